// Package events writes events about objects to the API server (events.k8s.io/v1), in the background.
package events

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"
)

const (
	// queueSize bounds the events that wait to be written, as in client-go. Events beyond it are dropped, and counted in the
	// log.
	queueSize = 1000
	// seriesTime is how long equal events count as one series after the last write, as in client-go.
	seriesTime = 6 * time.Minute
	// retryTime and retries bound how long an event is tried while the API server cannot be reached, as in client-go.
	retryTime = 10 * time.Second
	retries   = 12
	// reporter is the reporting controller of all events.
	reporter = "weir"
)

// Event is what is said about an object. Events that agree in all but the note are one series.
type Event struct {
	Regarding corev1.ObjectReference
	Type      string // corev1.EventTypeNormal or corev1.EventTypeWarning
	Reason    string
	Action    string
	Note      string
}

// Recorder writes events. Use New. Send is safe for concurrent use; Run may be called once.
//
// It is a small part of client-go's tools/events, which imports the clients of all kinds of Kubernetes.
type Recorder struct {
	client   eventsv1client.EventsGetter
	instance string
	logger   *slog.Logger
	queue    chan sent
	series   map[Event]*series // by event without its note
	last     time.Time         // of the newest event: each has a time of its own, which is in its name
}

// sent is an event and when it happened.
type sent struct {
	Event
	at time.Time
}

// series is an event that was written, and how often it happened.
type series struct {
	namespace, name string
	count           int32
	written         time.Time
}

// New makes a recorder for the process on a host.
func New(client eventsv1client.EventsGetter, host string, logger *slog.Logger) *Recorder {
	return &Recorder{
		client: client, instance: reporter + "-" + host, logger: logger,
		queue: make(chan sent, queueSize), series: make(map[Event]*series),
	}
}

// Send queues an event. It never blocks.
func (r *Recorder) Send(e Event) {
	select {
	case r.queue <- sent{e, time.Now()}:
	default:
		r.logger.Warn("too many events wait, one is dropped", "object", e.Regarding.Namespace+"/"+e.Regarding.Name, "reason", e.Reason)
	}
}

// Run writes events until ctx is done.
func (r *Recorder) Run(ctx context.Context) error {
	for {
		select {
		case e := <-r.queue:
			if !e.at.After(r.last) {
				e.at = r.last.Add(time.Nanosecond)
			}
			r.last = e.at
			r.record(ctx, e)
		case <-ctx.Done():
			return nil
		}
	}
}

// record writes an event, and tries again while the API server does not answer. What it refuses is dropped.
func (r *Recorder) record(ctx context.Context, e sent) {
	for range retries {
		err := r.write(ctx, e)
		var answer apierrors.APIStatus
		switch {
		case err == nil:
			return
		case errors.As(err, &answer):
			r.logger.Warn("event is refused", "object", e.Regarding.Namespace+"/"+e.Regarding.Name, "reason", e.Reason, "error", err)
			return
		}
		timer := time.NewTimer(retryTime)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
	r.logger.Warn("event is dropped, the API server does not answer",
		"object", e.Regarding.Namespace+"/"+e.Regarding.Name, "reason", e.Reason)
}

// write makes an event, or counts it in its series, which is written again at its second event and then after seriesTime.
func (r *Recorder) write(ctx context.Context, e sent) error {
	key := e.Event
	key.Note, key.Regarding.ResourceVersion = "", ""
	for k, s := range r.series {
		if e.at.Sub(s.written) >= 2*seriesTime {
			delete(r.series, k)
		}
	}
	s := r.series[key]
	if s == nil {
		return r.create(ctx, e, key)
	}
	if s.count > 1 && e.at.Sub(s.written) < seriesTime {
		s.count++
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"series": eventsv1.EventSeries{Count: s.count + 1, LastObservedTime: metav1.NewMicroTime(e.at)},
	})
	if err != nil {
		return err
	}
	_, err = r.client.Events(s.namespace).Patch(ctx, s.name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) { // events are kept for an hour
		return r.create(ctx, e, key)
	}
	if err == nil {
		s.count, s.written = s.count+1, e.at
	}
	return err
}

// create writes an event that begins a series.
func (r *Recorder) create(ctx context.Context, e sent, key Event) error {
	namespace := cmp.Or(e.Regarding.Namespace, metav1.NamespaceDefault)
	name := fmt.Sprintf("%s.%x", e.Regarding.Name, e.at.UnixNano())
	_, err := r.client.Events(namespace).Create(ctx, &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Name: name},
		EventTime:           metav1.NewMicroTime(e.at),
		ReportingController: reporter,
		ReportingInstance:   r.instance,
		Action:              e.Action,
		Reason:              e.Reason,
		Regarding:           e.Regarding,
		Note:                e.Note,
		Type:                e.Type,
	}, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) { // an earlier try came through
		r.series[key] = &series{namespace: namespace, name: name, count: 1, written: e.at}
		return nil
	}
	return err
}

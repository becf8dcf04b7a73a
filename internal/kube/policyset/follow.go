package policyset

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-lb/weir/internal/core/policy"
	"github.com/weir-lb/weir/internal/core/reason"
	"github.com/weir-lb/weir/internal/kube/feed"
	"github.com/weir-lb/weir/internal/latest"
	"github.com/weir-lb/weir/internal/ops"
)

// Reach is which objects of a kind are followed.
type Reach string

// The reaches.
const (
	None Reach = "none"
	Own  Reach = "own" // those of one node
	All  Reach = "all"
)

// The standard times of a Follower.
const (
	// DefaultDelay is how long changes are gathered, which is as long as a feed does.
	DefaultDelay = 50 * time.Millisecond
	// DefaultWait is how long the first set waits for objects that were not told of yet. Requests that come earlier would
	// be sent without policies; requests that wait longer would suffer more than that.
	DefaultWait = 5 * time.Second
	// DefaultAskAgain is how often the API server is asked for a kind that it does not know. With what is added to keep the
	// agents of a large cluster apart, a kind is found within 30 s.
	DefaultAskAgain = 20 * time.Second
)

// The share of its time that a Follower may spend on making sets, as the pause after one in times of what that took, and
// the longest such pause: with it, a change still is a set within a second.
const (
	pausePerBuild = 10
	maxPause      = 500 * time.Millisecond
)

// Options say what a Follower watches. The zero value watches policies, routes and nothing else.
type Options struct {
	Node  string // the node that Own is about
	Pods  Reach  // empty: None; without pods namespaces are not watched, either
	Nodes Reach  // empty: None
	// RulesOnly follows no routes, and leaves it to other parts to say what is wrong with policies or that there are none.
	RulesOnly bool
	Delay     time.Duration // 0: DefaultDelay
	Wait      time.Duration // 0: DefaultWait
	AskAgain  time.Duration // 0: DefaultAskAgain
	// Logger is told of problems with objects, of kinds that come and go and of watches that break; nil: none.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Pods, o.Nodes = cmp.Or(o.Pods, None), cmp.Or(o.Nodes, None)
	o.Delay, o.Wait, o.AskAgain = cmp.Or(o.Delay, DefaultDelay), cmp.Or(o.Wait, DefaultWait), cmp.Or(o.AskAgain, DefaultAskAgain)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

func (o *Options) validate() error {
	for _, reach := range []Reach{o.Pods, o.Nodes} {
		switch {
		case reach != None && reach != Own && reach != All:
			return fmt.Errorf("reach %q: want none, own or all", reach)
		case reach == Own && o.Node == "":
			return fmt.Errorf("reach own: name the node")
		}
	}
	return nil
}

// Follower keeps the newest set of a cluster's policies with all that they refer to. Run may be called once; the rest is
// safe for concurrent use.
//
// While the API server is away, the last state stays. A kind that the cluster does not have, or has no more, has no
// objects, and is asked for again and again. A policy that becomes invalid keeps the rules that it had.
type Follower struct {
	options Options
	store   *store
	source  source
	fixed   []toolscache.ResourceEventHandlerRegistration // of kinds that each cluster has
	kinds   []*resource
	builder builder

	sets     *latest.Value[*policy.Set]
	problems *latest.Value[[]reason.Finding]
	ready    chan struct{}
}

// NewFollower makes a follower of the cluster that config leads to. It asks for nothing before Run.
//
// Errors: options that contradict each other; a config that no client can be made of.
func NewFollower(config *rest.Config, o Options) (*Follower, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	f := &Follower{
		options: o, store: newStore(), builder: builder{options: &o},
		sets: latest.New(policy.NewSet(policy.Set{})), problems: latest.New[[]reason.Finding](nil), ready: make(chan struct{}),
	}
	f.kinds = resources(f.store)
	if o.RulesOnly {
		f.kinds = f.kinds[:1]
	}
	var err error
	if f.source, err = newSource(config, &f.options, f.lost); err != nil {
		return nil, err
	}
	return f, f.watchFixed()
}

// Sets holds the newest set: never nil, and empty before Ready.
func (f *Follower) Sets() *latest.Value[*policy.Set] { return f.sets }

// Problems holds what is wrong with the objects of the newest set, and what it needs that is not followed.
func (f *Follower) Problems() *latest.Value[[]reason.Finding] { return f.problems }

// Ready closes when Sets has a set of all that there is, or when Options.Wait is over.
func (f *Follower) Ready() <-chan struct{} { return f.ready }

// watchFixed begins with the kinds that each cluster has. Nothing is asked of the API server yet: the informers start with
// the cache.
func (f *Follower) watchFixed() error {
	type watch struct {
		object  client.Object
		handler toolscache.ResourceEventHandler
	}
	var watches []watch
	if f.options.Pods != None {
		watches = append(watches,
			watch{&corev1.Pod{}, feed.Handler(f.store.setPod, f.store.dropPod)},
			watch{&corev1.Namespace{}, feed.Handler(f.store.setNamespace, f.store.dropNamespace)})
	}
	if f.options.Nodes != None {
		watches = append(watches, watch{&corev1.Node{}, feed.Handler(f.store.setNode, f.store.dropNode)})
	}
	for _, w := range watches {
		informer, err := f.source.cache.GetInformer(context.Background(), w.object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %T: %w", w.object, err)
		}
		registration, err := informer.AddEventHandler(w.handler)
		if err != nil {
			return fmt.Errorf("watch %T: %w", w.object, err)
		}
		f.fixed = append(f.fixed, registration)
	}
	return nil
}

// lost is told by the cache that the API server does not know a kind.
func (f *Follower) lost(typeName string) {
	for _, k := range f.kinds {
		if k.typeName() == typeName {
			select {
			case k.gone <- struct{}{}:
			default: // it was said already
			}
		}
	}
}

// Run publishes sets until ctx is done, and then returns nil.
func (f *Follower) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return f.source.cache.Start(ctx) })
	for _, k := range f.kinds {
		group.Go(func() error { return f.followKind(ctx, k) })
	}
	group.Go(func() error {
		f.publishAll(ctx)
		return nil
	})
	return group.Wait()
}

// publishAll publishes the first set, and one after each change.
func (f *Follower) publishAll(ctx context.Context) {
	f.awaitAll(ctx)
	pause := f.publish()
	close(f.ready)
	for {
		select {
		case <-f.store.changed:
		case <-ctx.Done():
			return
		}
		if !ops.Sleep(ctx, max(f.options.Delay, pause)) {
			return
		}
		pause = f.publish()
	}
}

// awaitAll waits until all that is there was told, or for as long as the options say.
func (f *Follower) awaitAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, f.options.Wait)
	defer cancel()
	var waits []<-chan struct{}
	for _, r := range f.fixed {
		waits = append(waits, r.HasSyncedChecker().Done())
	}
	for _, k := range f.kinds {
		waits = append(waits, k.listed)
	}
	for _, w := range waits {
		select {
		case <-w:
		case <-ctx.Done():
			f.options.Logger.Warn("the cluster has not told of all policies yet, they are not waited for any longer",
				"waited", f.options.Wait.String())
			return
		}
	}
}

// publish makes a set of what there is, and gives how long to wait before another one: making one of a large cluster's
// pods takes some ten milliseconds, and in a large cluster some pod always changes.
func (f *Follower) publish() (pause time.Duration) {
	started := time.Now()
	set, problems := f.builder.next(f.store.take())
	f.sets.Store(set)
	f.problems.Store(problems)
	return min(pausePerBuild*time.Since(started), maxPause)
}

// builder makes each set of what there is and of the one before. One goroutine at a time.
type builder struct {
	options *Options
	before  *policy.Set
	told    map[string]bool // problems that were logged and are still there
}

func (b *builder) next(w objects) (*policy.Set, []reason.Finding) {
	parts, problems := w.assemble()
	set := parts.Keep(b.before, b.refused(&w))
	if set == &parts {
		set = policy.NewSet(parts)
	}
	b.before = set
	if b.options.RulesOnly {
		return set, nil
	}
	problems = append(b.explain(problems), Needs(set, *b.options)...)
	b.warn(problems)
	return set, problems
}

// refused lists the policies that are refused and were good before. One that was deleted and made again is another.
func (b *builder) refused(w *objects) []policy.Origin {
	var refused []policy.Origin
	for _, d := range w.documents {
		if d.kind == kindPolicy && reason.AnyRefused(d.problems) && b.knows(d.namespace, d.name, &d.created) {
			refused = append(refused, policy.Origin{Dialect: policy.DialectCRD, Namespace: d.namespace, Name: d.name})
		}
	}
	return refused
}

// knows tells whether the last set has rules of a policy, of the one that was created then if that is said.
func (b *builder) knows(namespace, name string, created *time.Time) bool {
	return b.before != nil && slices.ContainsFunc(b.before.Rules, func(r policy.Rule) bool {
		o := &r.Origin
		return o.Namespace == namespace && o.Name == name && (created == nil || o.Created.Equal(*created))
	})
}

// explain says of each policy that is refused what counts instead.
func (b *builder) explain(problems []reason.Finding) []reason.Finding {
	for i := range problems {
		p := &problems[i]
		if !p.IsRefused() || p.Instead != "" {
			continue
		}
		p.Instead = "nothing of it is followed"
		if b.knows(p.Object.Namespace, p.Object.Name, nil) {
			p.Instead = "the last good rules stay"
		}
	}
	return problems
}

// warn logs each problem once for as long as it is there.
func (b *builder) warn(problems []reason.Finding) {
	now := make(map[string]bool, len(problems))
	for i := range problems {
		text := problems[i].String()
		now[text] = true
		if !b.told[text] {
			b.options.Logger.Warn("policy problem", "problem", text)
		}
	}
	b.told = now
}

// jitter makes a time up to a quarter longer, so that the agents of a cluster do not ask all at once.
func jitter(d time.Duration) time.Duration {
	return d + rand.N(d/4+1) //nolint:gosec // nothing is gained by guessing it.
}

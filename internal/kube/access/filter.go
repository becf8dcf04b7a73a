// Package access admits HTTP requests as the API server would: by a TokenReview and a SubjectAccessReview.
package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	authenticationv1client "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

// How long answers of the API server are used, as in Kubernetes' own components: a right that is withdrawn ends after five
// minutes, one that is given begins after half a minute.
const (
	tokenLifetime   = time.Minute
	allowedLifetime = 5 * time.Minute
	deniedLifetime  = 30 * time.Second
	// cachedReviews bounds how many tokens, and how many users, are remembered. Metrics have a handful of readers; others
	// can only displace entries.
	cachedReviews = 1024
	// reviewTimeout bounds a review with its retries.
	reviewTimeout = 10 * time.Second
)

// Groups and the user that Kubernetes defines for requests with and without credentials.
const (
	groupAuthenticated   = "system:authenticated"
	groupUnauthenticated = "system:unauthenticated"
	userAnonymous        = "system:anonymous"
)

// filter admits requests whose bearer token is valid (TokenReview) and whose user is allowed the verb on the path
// (SubjectAccessReview). A request that cannot be decided is refused. It is safe for concurrent use.
//
// The answers are those of controller-runtime's filter, which comes with the whole library for API servers, gRPC and CEL:
// 401 without a token, 403 without the right, 500 for a token that is not valid and where a review fails.
type filter struct {
	logger *slog.Logger
	tokens authenticationv1client.TokenReviewInterface
	access authorizationv1client.SubjectAccessReviewInterface
	users  *cache.LRUExpireCache // SHA-256 of a token → *authenticationv1.UserInfo; nil: not valid
	rights *cache.LRUExpireCache // right → bool
}

// right is what a user may do or not, as a key. User is the whole identity, spelt by its String method.
type right struct{ user, verb, path string }

// errInvalidToken refuses a token that the API server does not know.
var errInvalidToken = errors.New("invalid bearer token")

// NewFilter makes a wrapper for handlers that asks the API server of config. It asks nothing before the first request.
func NewFilter(config *rest.Config, logger *slog.Logger) (func(http.Handler) http.Handler, error) {
	authentication, err := authenticationv1client.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	authorization, err := authorizationv1client.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	f := &filter{
		logger: logger,
		tokens: authentication.TokenReviews(), access: authorization.SubjectAccessReviews(),
		users: cache.NewLRUExpireCache(cachedReviews), rights: cache.NewLRUExpireCache(cachedReviews),
	}
	return f.wrap, nil
}

// wrap puts the filter before a handler.
func (f *filter) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := bearerToken(r)
		if token == "" {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		user, err := f.authenticate(r.Context(), token)
		if err != nil {
			f.logger.Error("authentication failed", "error", err)
			http.Error(w, "Authentication failed", http.StatusInternalServerError)
			return
		}
		isAllowed, err := f.authorize(r.Context(), user, r)
		switch {
		case err != nil:
			f.logger.Error("authorization failed", "user", user.Username, "error", err)
			http.Error(w, fmt.Sprintf("Authorization for user %s failed", user.Username), http.StatusInternalServerError)
		case !isAllowed:
			http.Error(w, fmt.Sprintf("Authorization denied for user %s", user.Username), http.StatusForbidden)
		default:
			r.Header.Del("Authorization") // nothing behind the filter needs the token
			next.ServeHTTP(w, r)
		}
	})
}

// bearerToken is the token of a request; empty if it has none.
func bearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	token, _, _ = strings.Cut(token, " ")
	return token
}

// authenticate finds the user of a token.
//
// Errors: errInvalidToken, what the API server says of the token, a review that failed.
func (f *filter) authenticate(ctx context.Context, token string) (*authenticationv1.UserInfo, error) {
	key := sha256.Sum256([]byte(token)) // so that no token stays in memory
	if known, ok := f.users.Get(key); ok {
		if user, ok := known.(*authenticationv1.UserInfo); ok && user != nil {
			return user, nil
		}
		return nil, errInvalidToken
	}
	asked := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	answer, err := review(ctx, asked, f.tokens.Create)
	if err != nil {
		return nil, fmt.Errorf("review a token: %w", err)
	}
	if answer.Status.Error != "" && !answer.Status.Authenticated {
		return nil, errors.New(answer.Status.Error)
	}
	if !answer.Status.Authenticated {
		f.users.Add(key, (*authenticationv1.UserInfo)(nil), tokenLifetime)
		return nil, errInvalidToken
	}
	user := &answer.Status.User
	isMarked := slices.Contains(user.Groups, groupAuthenticated) || slices.Contains(user.Groups, groupUnauthenticated)
	if user.Username != userAnonymous && !isMarked {
		user.Groups = append(user.Groups, groupAuthenticated)
	}
	f.users.Add(key, user, tokenLifetime)
	return user, nil
}

// authorize tells whether a user may do what r asks for.
func (f *filter) authorize(ctx context.Context, user *authenticationv1.UserInfo, r *http.Request) (bool, error) {
	key := right{user: user.String(), verb: strings.ToLower(r.Method), path: r.URL.Path}
	if known, ok := f.rights.Get(key); ok {
		return known == true, nil
	}
	asked := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: key.path, Verb: key.verb},
		User:                  user.Username, UID: user.UID, Groups: user.Groups,
	}}
	for name, values := range user.Extra {
		if asked.Spec.Extra == nil {
			asked.Spec.Extra = make(map[string]authorizationv1.ExtraValue)
		}
		asked.Spec.Extra[name] = authorizationv1.ExtraValue(values)
	}
	answer, err := review(ctx, asked, f.access.Create)
	if err != nil {
		return false, fmt.Errorf("review the access of a user: %w", err)
	}
	if answer.Status.Allowed && answer.Status.Denied {
		return false, errors.New("the API server answered allowed and denied")
	}
	lifetime := deniedLifetime
	if answer.Status.Allowed {
		lifetime = allowedLifetime
	}
	f.rights.Add(key, answer.Status.Allowed, lifetime)
	return answer.Status.Allowed, nil
}

// review has the API server decide, and retries errors that pass: at most five tries within four seconds.
func review[T any](
	ctx context.Context, asked *T, create func(context.Context, *T, metav1.CreateOptions) (*T, error),
) (answer *T, err error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	tries := wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 5}
	ended := wait.ExponentialBackoffWithContext(ctx, tries, func(ctx context.Context) (bool, error) {
		answer, err = create(ctx, asked, metav1.CreateOptions{})
		return !isTransient(err), nil
	})
	if err == nil {
		err = ended // nothing was asked, because ctx is done
	}
	return answer, err
}

// isTransient tells whether a call to the API server may succeed when it is made again.
func isTransient(err error) bool {
	if err == nil {
		return false
	}
	_, isDelayed := apierrors.SuggestsClientDelay(err)
	return isDelayed || utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err) ||
		apierrors.IsInternalError(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err)
}

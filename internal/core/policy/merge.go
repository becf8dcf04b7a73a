package policy

import "reflect"

// Merge lays the stronger configuration over the weaker one.
//
// Objects merge field by field, and a list replaces a list (RFC 7396). What is tagged as whole in api/conf, and a load
// balancer of another type, replaces what was there. Merge is associative and idempotent, and the zero Conf changes nothing.
// The result shares what it points at with both.
func Merge(weaker, stronger Conf) Conf {
	if w, s := weaker.LoadBalancer, stronger.LoadBalancer; w != nil && s != nil && (s.Whole || w.Type != s.Type) {
		whole := *s
		whole.Whole = true
		weaker.LoadBalancer, stronger.LoadBalancer = nil, &whole
	}
	var merged Conf
	merge(reflect.ValueOf(&merged).Elem(), reflect.ValueOf(&weaker).Elem(), reflect.ValueOf(&stronger).Elem())
	return merged
}

// merge sets each field of a struct to what the stronger one says, else to what the weaker one does.
func merge(to, weaker, stronger reflect.Value) {
	for i := range to.NumField() {
		w, s := weaker.Field(i), stronger.Field(i)
		isBlock := s.Kind() == reflect.Pointer && s.Type().Elem().Kind() == reflect.Struct
		switch {
		case s.Kind() == reflect.Struct:
			merge(to.Field(i), w, s)
		case s.IsZero():
			to.Field(i).Set(w)
		case w.IsZero() || !isBlock || to.Type().Field(i).Tag.Get(tagMerge) == mergeWhole:
			to.Field(i).Set(s)
		default:
			to.Field(i).Set(reflect.New(s.Type().Elem()))
			merge(to.Field(i).Elem(), w.Elem(), s.Elem())
		}
	}
}

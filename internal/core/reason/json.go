package reason

import "encoding/json"

// MarshalJSON gives {"code", "text", "values": {NAME: NUMBER}, "objects"}; text is String, for people, and the rest is
// for programs. Values keep their plain numbers: a ratio of 0.25 is 0.25.
func (r Reason) MarshalJSON() ([]byte, error) {
	var values map[string]float64
	if len(r.Values) > 0 {
		values = make(map[string]float64, len(r.Values))
		for _, v := range r.Values {
			values[v.Name] = v.Number
		}
	}
	return json.Marshal(struct {
		Code    Code               `json:"code"`
		Text    string             `json:"text"`
		Values  map[string]float64 `json:"values,omitempty"`
		Objects []string           `json:"objects,omitempty"`
	}{r.Code, r.String(), values, r.Objects})
}

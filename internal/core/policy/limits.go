package policy

import (
	"fmt"
	"math"
	"reflect"
)

// limit is what a number or a length of time must be.
type limit struct {
	least, most float64
	isAbove     bool   // least itself is out of bounds
	want        string // in words
}

// limits are the bounds of single fields, by path.
func limits(d Dialect) map[string]limit {
	percent := limit{0, 100, false, "a percentage from 0 to 100"}
	positive := limit{0, math.MaxFloat64, true, "a finite number above 0"}
	count := limit{0, MaxCount, false, fmt.Sprintf("a whole number from 0 to %d", MaxCount)}
	length := limit{0, float64(MaxDuration), true, "more than 0, and at most 1000000h"}
	size := limit{1, MaxRingSize, false, fmt.Sprintf("1 to %d", MaxRingSize)}
	threshold := limit{1, 100, false, "a percentage from 1 to 100"}
	if d.IsMesh() { // in which a part of one percent is a percentage
		threshold = limit{0, 100, true, "a percentage above 0 and up to 100"}
	}
	return map[string]limit{
		"loadBalancer.leastRequest.choiceCount":       {2, MaxChoiceCount, false, fmt.Sprintf("2 to %d", MaxChoiceCount)},
		"loadBalancer.leastRequest.activeRequestBias": {0, math.MaxFloat64, false, "a finite number of at least 0"},
		pathMinRingSize:                                    size,
		pathMaxRingSize:                                    size,
		pathThreshold:                                      threshold,
		pathMaxSkew:                                        {1, math.MaxFloat64, false, "a finite number of at least 1"},
		pathLoadBand + ".low":                              positive,
		pathLoadBand + ".high":                             positive,
		"outlierDetection.interval":                        length,
		pathBaseEjection:                                   length,
		pathMaxEjection:                                    length,
		"outlierDetection.maxEjectionPercent":              percent,
		"outlierDetection.consecutive.serverErrors":        count,
		"outlierDetection.consecutive.gatewayErrors":       count,
		"outlierDetection.consecutive.localErrors":         count,
		"outlierDetection.successRate.stdev":               positive,
		"outlierDetection.successRate.minimumHosts":        count,
		"outlierDetection.successRate.requestVolume":       count,
		"outlierDetection.failurePercentage.threshold":     percent,
		"outlierDetection.failurePercentage.minimumHosts":  count,
		"outlierDetection.failurePercentage.requestVolume": count,
		pathSlowStart + ".window":                          length,
		pathSlowStart + ".minWeightPercent":                percent,
		pathSlowStart + ".aggression":                      positive,
		pathPanic:                                          percent,
	}
}

// bounds refuses what is out of the bounds of its field, NaN too.
func (v *validator) bounds(c *Conf) {
	all := limits(v.dialect)
	for _, f := range allFields() {
		l, isLimited := all[f.path]
		said, _ := f.of(c)
		if said.Kind() == reflect.Pointer {
			said = said.Elem()
		}
		var n float64
		switch {
		case isLimited && said.CanInt():
			n = float64(said.Int())
		case isLimited && said.CanFloat():
			n = said.Float()
		default:
			continue
		}
		if !(n >= l.least && n <= l.most) || l.isAbove && n == l.least {
			v.refuse(f.path, "is %v: want %s", said, l.want)
		}
	}
}

package plan

// balanced stands in for the mode Balanced until it is merged.
func balanced(_ *prepared) allotment { return allotment{} }

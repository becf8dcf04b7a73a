package plan

func auto(*prepared) allotment { return allotment{} }

// Package explain shows plans to people and programs: which endpoints each zone uses, what that costs, why, and what
// would help.
//
// It decides nothing. Plans, choices and advice are package plan's, sentences are package reason's; what is here is a
// view of them with stable JSON names, and its rendering as tables.
package explain

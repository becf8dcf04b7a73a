// Package weir is the root of the module; it holds no code, only the tests that keep the house in order. Start at
// cmd/weir for the program and at internal/core for what it decides.
package weir

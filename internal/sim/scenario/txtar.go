package scenario

import "strings"

// section is a part of a file: what follows a line "-- NAME --".
type section struct {
	name string
	line int // of the marker
	body []string
}

// split cuts a text into the comment at its top and its sections, in the format called txtar.
func split(text string) (comment []string, sections []section) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, " \t\r")
		name, isMarker := marker(line)
		switch {
		case isMarker:
			sections = append(sections, section{name: name, line: i + 1})
		case len(sections) == 0:
			comment = append(comment, line)
		default:
			last := &sections[len(sections)-1]
			last.body = append(last.body, line)
		}
	}
	return comment, sections
}

// marker gives the name of the section that a line begins.
func marker(line string) (name string, ok bool) {
	inner, hasHead := strings.CutPrefix(strings.TrimRight(line, " \t\r"), "-- ")
	inner, hasTail := strings.CutSuffix(inner, " --")
	inner = strings.TrimSpace(inner)
	return inner, hasHead && hasTail && inner != ""
}

// prose gives lines without the empty ones around them, each with its line end; empty when there is none.
func prose(lines []string) string {
	first, last := 0, len(lines)
	for first < last && lines[first] == "" {
		first++
	}
	for last > first && lines[last-1] == "" {
		last--
	}
	if first == last {
		return ""
	}
	return strings.Join(lines[first:last], "\n") + "\n"
}

// tidy gives text as prose would after split: no spaces at line ends, no empty lines around it, one line end at its end.
func tidy(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t\r")
	}
	return prose(lines)
}

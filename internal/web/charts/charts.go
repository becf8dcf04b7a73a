// Package charts holds the script that draws weir's charts in a browser, and writes pages that embed it with what they show.
//
// A page is one file: it opens offline, and its content security policy allows no other script, style or host than its own.
// Values are drawn by the script alone; it writes them as text, so that names from users' files are never markup.
package charts

import (
	"crypto/sha256"
	_ "embed" // for what pages are made of
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
)

// What a page is made of: Script defines charts, which draws; Report shows a comparison of strategies with it.
var (
	//go:embed charts.js
	script string
	//go:embed report.js
	report string
	//go:embed charts.css
	style string
)

// page is filled with a policy, a style, JSON and a script.
const page = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>weir simulate</title>
<style>%s</style>
</head>
<body>
<noscript><p>This page draws its charts and tables with a script of its own. Allow it to run to see them.</p></noscript>
<script type="application/json" id="result">%s</script>
<script>%s</script>
</body>
</html>
`

// WriteReport writes the page of a comparison, given as the result that weir simulate prints as JSON, with details.
//
// Errors: those of the writer, and of what JSON cannot say.
func WriteReport(w io.Writer, result any) error {
	data, err := json.Marshal(result) // which escapes <, > and &, so that nothing in it ends the element
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	code := script + report
	policy := fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src blob:", hash(code), hash(style))
	if _, err := fmt.Fprintf(w, page, policy, style, data, code); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// hash names a script or style in a content security policy.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

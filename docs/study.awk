# Makes the table of docs/simulation.md out of the CSV of weir simulate: our percentage, and in brackets the study's where it
# printed one. What is good in the scenario uneven is told of all clients, as the study has it.
BEGIN {
	FS = ","
	columns = split("random static-same-zone envoy-zone priority hazl weir", contender, " ")
	rows = split("skew spike brownout distance coin half-failing zone-loss uneven low-rate autoscale neighbour " \
		"steady streams noise rollout speeds day", scenario, " ")

	good("skew", "98.8 0.9 75.5 74.8 92.8 98.6")
	good("spike", "98.5 0.7 74.6 77.1 91.7 98.6")
	good("brownout", "66.2 0.0 92.6 92.3 71.5 96.4")
	good("distance", "66.1 0.0 0.0 0.0 35.8 95.4")
	good("coin", "82.5 49.6 91.4 91.3 49.8 97.0")
	good("half-failing", "82.4 49.7 98.3 98.2 89.0 98.2")
	good("zone-loss", "76.7 32.4 96.4 96.4 72.9 97.3")
	good("uneven", "98.7 33.0 98.9 96.6 95.8 97.1")
	good("low-rate", "97.8 1.8 5.0 3.6 2.2 94.3")
	good("autoscale", "96.0 7.9 63.7 75.5 96.2 98.6")
	good("neighbour", "93.7 0.4 68.2 60.6 75.4 97.7")
	cross("skew", "66.8 - 43.5 - 22.0 18.1")
	cross("spike", "66.8 - 41.8 - 21.0 18.1")
	cross("brownout", "66.8 - 31.2 - 24.9 33.4")
	cross("zone-loss", "66.7 - 32.6 - 33.9 33.7")
	cross("low-rate", "66.7 - 1.5 - 0.0 11.7")
	cross("autoscale", "66.5 - 33.2 - 15.4 17.7")
	cross("steady", "- - - - 0.0 0.06")
	cross("streams", "- - - - 24.4 0.2")
	cross("noise", "- - - - 0.0 0.5")
	cross("rollout", "- - - - 0.0 0.9")
	cross("speeds", "- - - - 0.0 0.1")
	cross("day", "- - - - 0.0 0.9")
}

function good(s, list) { study["good", s] = list }
function cross(s, list) { study["cross", s] = list }

$3 == "inZone" { ours["cross", $1, $2] = 100 * (1 - $5) }
$3 == "affectedGood" && $1 != "uneven" || $3 == "good" && $1 == "uneven" { ours["good", $1, $2] = 100 * $5 }

function row(what, s,    line, theirs, i) {
	split(study[what, s], theirs, " ")
	line = "| `" s "` |"
	for (i = 1; i <= columns; i++) {
		if (!((what, s, contender[i]) in ours)) {
			print "study.awk: no result of " s " with " contender[i] > "/dev/stderr"
			exit failed = 1
		}
		line = line sprintf(" %.1f", ours[what, s, contender[i]])
		if (theirs[i] != "" && theirs[i] != "-") line = line " (" theirs[i] ")"
		line = line " |"
	}
	print line
}

function head(title) {
	print "| " title " | random | same zone | Envoy's zones | priority | Hazl | weir |"
	print "|---|---|---|---|---|---|---|"
}

END {
	head("good %")
	for (r = 1; r <= rows && !failed; r++) row("good", scenario[r])
	if (!failed) { print ""; head("cross-zone %") }
	for (r = 1; r <= rows && !failed; r++) row("cross", scenario[r])
	exit failed
}

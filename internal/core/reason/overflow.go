package reason

// Codes of package overflow.
const (
	ZoneCopes Code = "ZoneCopes"
)

func overflowTexts() map[Code]string {
	return map[Code]string{
		ZoneCopes: "the zone copes with its own traffic",
	}
}

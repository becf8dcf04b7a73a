package reason

// Codes of package plan.
const (
	NoEndpoints Code = "NoEndpoints"
)

func planTexts() map[Code]string {
	return map[Code]string{
		NoEndpoints: "the service has no ready endpoint",
	}
}

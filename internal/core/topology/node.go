package topology

// MilliCPU is an amount of processor time in thousandths of a core.
type MilliCPU int64

// MaxCPU is the most that a node may report, a million cores: far above any machine, and the sum over all nodes of a
// cluster still fits.
const MaxCPU MilliCPU = 1_000_000_000

// Node is a machine on which clients and endpoints run.
type Node struct {
	Name         string
	Zone         Zone     // empty: the node carries no zone label
	Region       string   // empty: no region label
	CPU          MilliCPU // allocatable; 0: not reported
	Ready        bool
	ControlPlane bool // carries node-role.kubernetes.io/control-plane or …/master
}

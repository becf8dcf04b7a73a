package topology

// MilliCPU is an amount of processor time in thousandths of a core.
type MilliCPU int64

// Node is a machine on which clients and endpoints run.
type Node struct {
	Name         string
	Zone         Zone     // empty: the node carries no zone label
	Region       string   // empty: no region label
	CPU          MilliCPU // allocatable; 0: not reported
	Ready        bool
	ControlPlane bool // carries node-role.kubernetes.io/control-plane or …/master
}

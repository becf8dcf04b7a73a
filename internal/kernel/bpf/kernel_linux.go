package bpf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// version names the layout of the maps: programs of a release go on with the maps of another one if it is the same.
const version = "v1"

// Kernel is what runs in the kernel. One goroutine at a time, but for counters, which programs write at any time.
type Kernel struct {
	// Missing names what this kernel does not do, each with the reason; the rest works.
	Missing []string

	options  Options
	maps     map[string]*ebpf.Map
	programs map[string]*ebpf.Program
	links    []link.Link
	memory   map[string][]byte // of the arrays
	capacity Capacity
}

// hooks lists the programs with where they are attached. Without the required ones nothing can be placed.
func hooks() []hook {
	return []hook{
		{objectsProgConnect4, ebpf.AttachCGroupInet4Connect, true},
		{objectsProgConnect6, ebpf.AttachCGroupInet6Connect, false},
		{objectsProgGetpeername4, ebpf.AttachCgroupInet4GetPeername, false},
		{objectsProgGetpeername6, ebpf.AttachCgroupInet6GetPeername, false},
		{objectsProgRecvmsg4, ebpf.AttachCGroupUDP4Recvmsg, false},
		{objectsProgRecvmsg6, ebpf.AttachCGroupUDP6Recvmsg, false},
		{objectsProgSendmsg4, ebpf.AttachCGroupUDP4Sendmsg, false},
		{objectsProgSendmsg6, ebpf.AttachCGroupUDP6Sendmsg, false},
		{objectsProgCountTcp, ebpf.AttachCGroupSockOps, false},
	}
}

type hook struct {
	program  string
	attach   ebpf.AttachType
	required bool
}

// Open loads the programs and attaches them. Maps that an earlier process pinned are used again if they have room enough, so
// that counts go on, and the programs of its links are replaced. No connection is placed before the first Beat.
//
// Errors: what cannot do without; the kernel is then as before, but for a few objects that Detach removes.
func Open(o Options) (*Kernel, error) {
	if o.Cgroup == "" {
		found, err := FindCgroup()
		if err != nil {
			return nil, err
		}
		o.Cgroup = found
	}
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("lift the limit of locked memory: %w", err)
	}
	spec, err := loadObjects()
	if err != nil {
		return nil, err
	}
	k := &Kernel{
		options: o, maps: make(map[string]*ebpf.Map), programs: make(map[string]*ebpf.Program), memory: make(map[string][]byte),
	}
	k.checkPins()
	for _, open := range []func(*ebpf.CollectionSpec) error{k.openMaps, k.mapArrays, k.load, k.attach} {
		if err := open(spec); err != nil {
			return nil, errors.Join(err, k.Close())
		}
	}
	k.state().Cgroup = ownCgroup()
	return k, nil
}

// checkPins does without pins where there is no bpf file system.
func (k *Kernel) checkPins() {
	if k.options.Pins == "" {
		return
	}
	var stat unix.Statfs_t
	parent := filepath.Dir(k.options.Pins)
	err := unix.Statfs(parent, &stat)
	switch {
	case err == nil && stat.Type != unix.BPF_FS_MAGIC:
		err = fmt.Errorf("%s is in no bpf file system", parent)
	case err == nil:
		err = errors.Join(os.MkdirAll(k.folder(), 0o700), os.MkdirAll(k.linkFolder(), 0o700))
	}
	if err != nil {
		k.Missing = append(k.Missing, fmt.Sprintf("pins, so that counts end with the agent: %v", err))
		k.options.Pins = ""
	}
}

func (k *Kernel) folder() string     { return filepath.Join(k.options.Pins, version) }
func (k *Kernel) linkFolder() string { return filepath.Join(k.options.Pins, "links") }

// maxFlows bounds how many UDP flows of unconnected sockets are remembered, two entries each; the one that was not used for
// longest is forgotten first, and gets another endpoint with its next datagram.
const maxFlows = 1 << 16

// openMaps takes over the pinned maps, all or none, or makes new ones.
func (k *Kernel) openMaps(spec *ebpf.CollectionSpec) error {
	c := k.options.Capacity
	entries := map[string]uint32{
		objectsMapWeirServices: c.Services, objectsMapWeirTables: c.Services, objectsMapWeirEndpoints: c.Endpoints,
		objectsMapWeirSlots: c.Slots / SlotsInBlock, objectsMapWeirFlows: maxFlows,
	}
	for name, n := range entries {
		spec.Maps[name].MaxEntries = max(1, n)
	}
	if k.options.Pins != "" && k.takeOver(spec) {
		return nil
	}
	for name, s := range spec.Maps {
		m, err := ebpf.NewMap(s)
		if err != nil {
			return fmt.Errorf("make map %s: %w", name, err)
		}
		k.maps[name] = m
		if k.options.Pins == "" {
			continue
		}
		path := filepath.Join(k.folder(), name)
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("replace pinned map: %w", err)
		}
		if err := m.Pin(path); err != nil {
			return fmt.Errorf("pin map %s: %w", name, err)
		}
	}
	return nil
}

// takeOver opens the pinned maps if all are there, of the same layout, and with room enough.
func (k *Kernel) takeOver(spec *ebpf.CollectionSpec) bool {
	found := make(map[string]*ebpf.Map)
	for name, s := range spec.Maps {
		m, err := ebpf.LoadPinnedMap(filepath.Join(k.folder(), name), nil)
		if err == nil {
			found[name] = m
		}
		if err != nil || m.Type() != s.Type || m.KeySize() != s.KeySize || m.ValueSize() != s.ValueSize || m.MaxEntries() < s.MaxEntries {
			for _, m := range found {
				_ = m.Close()
			}
			return false
		}
	}
	for name, m := range found {
		spec.Maps[name].MaxEntries = m.MaxEntries()
	}
	k.maps = found
	return true
}

// mapArrays lets the agent write arrays without a system call for each element.
func (k *Kernel) mapArrays(*ebpf.CollectionSpec) error {
	for _, name := range []string{objectsMapWeirState, objectsMapWeirTables, objectsMapWeirSlots, objectsMapWeirEndpoints} {
		m, page := k.maps[name], os.Getpagesize()
		size := int(m.MaxEntries()) * ((int(m.ValueSize()) + 7) / 8 * 8)
		memory, err := unix.Mmap(m.FD(), 0, (size+page-1)/page*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return fmt.Errorf("map %s into memory: %w", name, err)
		}
		k.memory[name] = memory
	}
	k.capacity = Capacity{
		Services:  k.maps[objectsMapWeirTables].MaxEntries(),
		Endpoints: k.maps[objectsMapWeirEndpoints].MaxEntries(),
		Slots:     k.maps[objectsMapWeirSlots].MaxEntries() * SlotsInBlock,
	}
	return nil
}

// load loads each program alone, so that one that this kernel refuses keeps no other from running.
func (k *Kernel) load(spec *ebpf.CollectionSpec) error {
	for _, h := range hooks() {
		one := spec.Copy()
		one.Programs = map[string]*ebpf.ProgramSpec{h.program: spec.Programs[h.program]}
		loaded, err := ebpf.NewCollectionWithOptions(one, ebpf.CollectionOptions{MapReplacements: k.maps})
		if err != nil {
			if h.required {
				return fmt.Errorf("load program %s: %w", h.program, err)
			}
			k.Missing = append(k.Missing, fmt.Sprintf("program %s: %v", h.program, err))
			continue
		}
		k.programs[h.program] = loaded.DetachProgram(h.program)
		loaded.Close()
	}
	return nil
}

// attach hangs the programs on the cgroup, in place of those that an earlier process pinned there. Connect comes last: a
// connection that is placed is counted.
func (k *Kernel) attach(*ebpf.CollectionSpec) error {
	for _, h := range slices.Backward(hooks()) {
		program := k.programs[h.program]
		if program == nil {
			continue
		}
		l, err := k.link(h, program)
		if err != nil {
			if h.required {
				return fmt.Errorf("attach program %s to %s: %w", h.program, k.options.Cgroup, err)
			}
			k.Missing = append(k.Missing, fmt.Sprintf("hook %s: %v", h.program, err))
			continue
		}
		k.links = append(k.links, l)
	}
	return nil
}

// link attaches one program.
func (k *Kernel) link(h hook, program *ebpf.Program) (link.Link, error) {
	path := filepath.Join(k.linkFolder(), h.program)
	if k.options.Pins != "" {
		if l := k.replace(path, program); l != nil {
			return l, nil
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("remove pinned link: %w", err)
		}
	}
	l, err := link.AttachCgroup(link.CgroupOptions{Path: k.options.Cgroup, Attach: h.attach, Program: program})
	if err != nil {
		return nil, err
	}
	if k.options.Pins == "" {
		return l, nil
	}
	if err := l.Pin(path); err != nil {
		return nil, errors.Join(fmt.Errorf("pin link: %w", err), l.Close())
	}
	return l, nil
}

// replace makes a pinned link run another program; nil: there is none on this cgroup.
func (k *Kernel) replace(path string, program *ebpf.Program) link.Link {
	l, err := link.LoadPinnedLink(path, nil)
	if err != nil {
		return nil
	}
	if info, err := l.Info(); err == nil && info.Cgroup() != nil && info.Cgroup().CgroupId == inode(k.options.Cgroup) {
		if l.Update(program) == nil {
			return l
		}
	}
	_ = l.Close()
	return nil
}

func inode(path string) uint64 {
	var stat unix.Stat_t
	if unix.Stat(path, &stat) != nil {
		return 0
	}
	return stat.Ino
}

// Capacity is what the maps have room for: that of the options, or of the pinned maps.
func (k *Kernel) Capacity() Capacity { return k.capacity }

// at gives the element of a mapped array.
func at[T any](memory []byte, index uint32) *T {
	var zero T
	size := (unsafe.Sizeof(zero) + 7) / 8 * 8
	return (*T)(unsafe.Pointer(&memory[uintptr(index)*size])) //nolint:gosec // the array has elements of T.
}

func (k *Kernel) state() *objectsState { return at[objectsState](k.memory[objectsMapWeirState], 0) }

// Beat tells the programs that the agent is there. Without it for 1.5 s they leave every socket alone.
func (k *Kernel) Beat() {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err == nil {
		atomic.StoreUint64(&k.state().Heartbeat, uint64(now.Nano())) //nolint:gosec // since boot.
	}
}

// Table gives a table by its index below Capacity.Services.
func (k *Kernel) Table(index uint32) *Table { return at[Table](k.memory[objectsMapWeirTables], index) }

// Endpoint gives an endpoint by its index below Capacity.Endpoints.
func (k *Kernel) Endpoint(index uint32) *Endpoint {
	return at[Endpoint](k.memory[objectsMapWeirEndpoints], index)
}

// Slots are all slots; tables name ranges of them.
func (k *Kernel) Slots() []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(k.memory[objectsMapWeirSlots]))), k.capacity.Slots) //nolint:gosec // as long as the array.
}

// Put has the connections to a VIP placed by a table.
func (k *Kernel) Put(v VIP, table uint32) error {
	return k.maps[objectsMapWeirServices].Put(&v, table)
}

// Remove leaves the connections to a VIP alone.
func (k *Kernel) Remove(v VIP) error {
	if err := k.maps[objectsMapWeirServices].Delete(&v); !errors.Is(err, ebpf.ErrKeyNotExist) {
		return err
	}
	return nil
}

// Services gives the VIPs with their tables.
func (k *Kernel) Services() (map[VIP]uint32, error) {
	found := make(map[VIP]uint32)
	var v VIP
	var table uint32
	all := k.maps[objectsMapWeirServices].Iterate()
	for all.Next(&v, &table) {
		found[v] = table
	}
	return found, all.Err()
}

// Close leaves all sockets alone from now on, and lets go of what is in the kernel. What is pinned stays there, and counts.
func (k *Kernel) Close() error {
	var errs []error
	if k.memory[objectsMapWeirState] != nil {
		atomic.StoreUint64(&k.state().Heartbeat, 0)
	}
	for _, l := range k.links {
		errs = append(errs, l.Close())
	}
	for _, p := range k.programs {
		errs = append(errs, p.Close())
	}
	for _, memory := range k.memory {
		errs = append(errs, unix.Munmap(memory))
	}
	for _, m := range k.maps {
		errs = append(errs, m.Close())
	}
	k.links, k.programs, k.memory, k.maps = nil, nil, nil, nil
	return errors.Join(errs...)
}

// IsPinned tells whether a process has left something in a folder of pins.
func IsPinned(pins string) bool {
	_, err := os.Stat(filepath.Join(pins, "links"))
	return pins != "" && err == nil
}

// Detach removes all that was pinned in a folder, links first, and the folder; it tells how many hooks it freed.
//
// Errors: a folder that is in no bpf file system, which is left as it is.
func Detach(pins string) (int, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(pins, &stat); errors.Is(err, unix.ENOENT) {
		return 0, nil
	} else if err != nil {
		return 0, fmt.Errorf("find pins: %w", err)
	}
	if stat.Type != unix.BPF_FS_MAGIC {
		return 0, fmt.Errorf("%s is in no bpf file system", pins)
	}
	links, err := os.ReadDir(filepath.Join(pins, "links"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, fmt.Errorf("read pinned links: %w", err)
	}
	for _, folder := range []string{"links", version} {
		if err := os.RemoveAll(filepath.Join(pins, folder)); err != nil {
			return 0, fmt.Errorf("remove pins: %w", err)
		}
	}
	return len(links), os.Remove(pins)
}

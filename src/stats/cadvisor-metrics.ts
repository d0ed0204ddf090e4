import { join } from 'node:path';
import {
  type CgroupHost,
  type CgroupLayout,
  type Clock,
  cgroupPids,
  type FileSystemSpace,
  labelText,
  type Mount,
  mountOf,
  parseMountinfo,
  type Sample,
  type SampledFamily,
} from '../lib/index.ts';
import { Yielder } from './cached-sample.ts';
import { cgroupMeasures, type Measure, nothingMoved } from './cgroup/cgroup-measures.ts';
import { type InterfaceUsage, interfacesIn } from './cgroup/host-usage.ts';
import { ContainerCgroups, treeOf } from './cgroup-file-cache.ts';
import type { FileUsage, StatsMachine } from './node-stats.ts';
import type { PodSubject } from './pod-subjects.ts';

/** The sources of the cgroup metrics; all are read-only. */
export interface CadvisorSources {
  readonly clock: Clock;
  readonly host: CgroupHost;
  readonly layout: CgroupLayout;
  /** Returns the pods with a running container. */
  readonly pods: () => readonly PodSubject[];
  /** Paths of cgroups that do not belong to pods. */
  readonly otherCgroups: readonly string[];
  readonly machine: Pick<StatsMachine, 'openFiles' | 'kernel'>;
  /**
   * Returns the size of each container's writable layer by container id, and the file system of the
   * layers.
   */
  readonly written: (signal: AbortSignal) => Promise<Written>;
  readonly capacity: { readonly cores: number; readonly memoryBytes: number; readonly swapBytes: number };
}

export interface Written {
  readonly layers: ReadonlyMap<string, FileUsage>;
  /** The file system that contains the container layers. */
  readonly disk: FileSystemSpace | undefined;
  /** The file systems of the node, keyed by a path on them. */
  readonly disks: ReadonlyMap<string, FileSystemSpace>;
}

/** Labels of a cgroup's metrics; empty when unknown. */
interface Row {
  readonly path: string;
  readonly container: string;
  readonly image: string;
  readonly name: string;
  readonly namespace: string;
  readonly pod: string;
  readonly startMs: number | undefined;
  /**
   * Whether the cgroup's metrics include the network interfaces of its pod or of the node;
   * undefined for cgroups without a network namespace.
   */
  readonly network?: 'pod' | 'node';
}

/** Returns the metrics of `/metrics/cadvisor` for all current cgroups. */
export async function cadvisorMetrics(
  sources: CadvisorSources,
  signal: AbortSignal,
): Promise<readonly SampledFamily[]> {
  const rows = await findRows(sources);
  const written = await sources.written(signal);
  const blocks = await blockDevices(sources.host);
  const names = new Map(blocks.map(({ id, device }) => [id, device]));
  const deviceName = (id: string) => names.get(id) ?? '';
  const main = mainDevice(blocks, written.disks);
  const families = new Map<string, Sample[]>();
  const turns = new Yielder(sources.clock);
  for (const row of rows) {
    if (turns.isDue) await turns.yield();
    const timestampMs = sources.clock.now();
    const own = await measuresOf(row, deviceName, sources);
    const isStill = row.container !== '' && !own.some(({ name }) => name === 'fs_reads_total');
    const identity = identityOf(row);
    const add = ({ name, labels, value }: Measure) => {
      const samples = families.get(name);
      const sample = {
        labels: labels === undefined ? identity : withMore(identity, labels),
        value,
        timestampMs,
      };
      if (samples === undefined) families.set(name, [sample]);
      else samples.push(sample);
    };
    const machine = row.path === '/' ? machineMeasures(sources) : [];
    const reported = new Set(machine.map(({ name }) => name));
    for (const measure of own) if (!reported.has(measure.name)) add(measure);
    machine.forEach(add);
    if (isStill && main !== undefined) nothingMoved(main, deviceName).forEach(add);
    layerOf(row, written).forEach(add);
    if (row.path === '/') diskMeasures(blocks, written.disks).forEach(add);
  }
  return [
    ...[...families].map(([name, samples]) => familyOf(`container_${name}`, samples)),
    ...machineFamilies(sources),
    scrapeError(0),
  ];
}

/** The metric `container_scrape_error`: 1 when the scrape failed, otherwise 0. */
export function scrapeError(value: 0 | 1): SampledFamily {
  return familyOf('container_scrape_error', [{ value }]);
}

/** Adds the labels to all metrics of a cgroup. */
function identityOf({ path: id, container, image, name, namespace, pod }: Row): string {
  const labels = { container, id, image, name, namespace, pod };
  return labelText(Object.keys(labels), labels);
}

function withMore(identity: string, labels: Readonly<Record<string, string>>): string {
  return `${identity},${labelText(Object.keys(labels), labels)}`;
}

/** Metrics whose type differs from what their name suggests, as in cAdvisor. */
const oddTypes = new Map<string, SampledFamily['type']>([
  ['container_fs_inodes_total', 'gauge'],
  ['container_memory_failcnt', 'counter'],
]);

function familyOf(name: string, samples: readonly Sample[]): SampledFamily {
  const type = oddTypes.get(name) ?? (name.endsWith('_total') ? 'counter' : 'gauge');
  const words = name.replace(/^container_/, '').replaceAll('_', ' ');
  return { name, type, help: `cAdvisor metric of a cgroup: ${words}.`, samples };
}

function machineFamilies({ machine, capacity }: CadvisorSources): readonly SampledFamily[] {
  const gauge = (name: string, help: string, value: number, labels = {}): SampledFamily => ({
    name,
    type: 'gauge',
    help,
    samples: [{ labels, value }],
  });
  const versions = {
    kernelVersion: machine.kernel,
    osVersion: '',
    dockerVersion: '',
    cadvisorVersion: '',
    cadvisorRevision: '',
  };
  return [
    gauge('machine_cpu_cores', 'Number of CPUs of the machine.', capacity.cores),
    gauge('machine_memory_bytes', 'Memory capacity of the machine.', capacity.memoryBytes),
    gauge('machine_swap_bytes', 'Swap capacity of the machine.', capacity.swapBytes),
    gauge('cadvisor_version_info', 'Version information of the machine; always 1.', 1, versions),
  ];
}

async function findRows({ pods, host, layout, otherCgroups }: CadvisorSources): Promise<readonly Row[]> {
  const subjects = pods();
  const paths = await new ContainerCgroups(host, layout).find(subjects);
  const rest = otherCgroups.map((path) => ({ ...blank, path }));
  return [...rest, ...subjects.flatMap((subject) => rowsOf(subject, paths))];
}

const blank = { container: '', image: '', name: '', namespace: '', pod: '', startMs: undefined };

function rowsOf(
  { name: pod, namespace, cgroup, sandbox, containers, network }: PodSubject,
  paths: ReadonlyMap<string, string>,
): readonly Row[] {
  if (cgroup === '') return [];
  const row = (id: string, container: string, image: string, startMs: number): readonly Row[] => {
    const path = paths.get(id);
    return path === undefined ? [] : [{ path, container, image, name: id, namespace, pod, startMs }];
  };
  const [first] = sandbox === undefined ? [] : row(sandbox.id, 'POD', '', sandbox.createdAtMs);
  return [
    { ...blank, path: cgroup, namespace, pod },
    ...(first === undefined ? [] : [{ ...first, network }]),
    ...containers.flatMap(({ id, name, image, createdAtMs }) => row(id, name, image, createdAtMs)),
  ];
}

async function measuresOf(
  row: Row,
  deviceName: (id: string) => string,
  sources: CadvisorSources,
): Promise<readonly Measure[]> {
  const { layout, host, clock } = sources;
  const own = cgroupMeasures(layout, row.path, host, deviceName);
  const times = [
    { name: 'last_seen', value: Math.floor(clock.now() / 1_000) },
    {
      name: 'start_time_seconds',
      value: row.startMs === undefined ? undefined : Math.floor(row.startMs / 1_000),
    },
  ];
  if (row.container === '') return [...own, ...times];
  const pids = (await cgroupPids(host, [join(treeOf(layout), row.path)])).filter((pid) => pid > 0);
  const network = row.network === 'pod' ? networkOf(pids[0], host) : [];
  return [...own, ...times, ...(await processesOf(pids, sources)), ...network];
}

async function processesOf(
  pids: readonly number[],
  { host, machine }: CadvisorSources,
): Promise<readonly Measure[]> {
  const open = await Promise.all(pids.map((pid) => machine.openFiles(pid)));
  const limits = host.readSync(`/proc/${pids[0] ?? 0}/limits`) ?? '';
  const most = /^Max open files\s+(\d+|unlimited)/m.exec(limits)?.[1];
  return [
    { name: 'processes', value: pids.length },
    { name: 'file_descriptors', value: open.reduce((sum, { all }) => sum + all, 0) },
    { name: 'sockets', value: open.reduce((sum, { sockets }) => sum + sockets, 0) },
    {
      name: 'ulimits_soft',
      labels: { ulimit: 'max_open_files' },
      value: most === undefined ? undefined : most === 'unlimited' ? -1 : Number(most),
    },
  ];
}

/**
 * Metrics of a container's writable layer; the device label is empty, because the runtime does not
 * report the device.
 */
function layerOf({ name }: Row, { layers, disk }: Written): readonly Measure[] {
  const layer = layers.get(name);
  if (layer === undefined) return [];
  const labels = { device: '' };
  return [
    { name: 'fs_usage_bytes', labels, value: layer.usedBytes },
    { name: 'fs_limit_bytes', labels, value: disk?.capacityBytes },
  ];
}

function networkOf(pid: number | undefined, host: CgroupHost): readonly Measure[] {
  return pid === undefined ? [] : traffic(interfacesOf(`/proc/${pid}`, host));
}

/** Metrics of the root cgroup, which has the machine's limits and network. */
function machineMeasures({ host, capacity }: CadvisorSources): readonly Measure[] {
  return [
    { name: 'spec_memory_limit_bytes', value: capacity.memoryBytes },
    { name: 'spec_memory_swap_limit_bytes', value: capacity.swapBytes },
    ...traffic(interfacesOf('/proc/self', host)),
  ];
}

function interfacesOf(process: string, host: CgroupHost): readonly InterfaceUsage[] {
  return interfacesIn(host.readSync(`${process}/net/dev`) ?? '');
}

function traffic(interfaces: readonly InterfaceUsage[]): readonly Measure[] {
  return interfaces.flatMap((each) =>
    (
      [
        ['receive_bytes', each.rxBytes],
        ['receive_packets', each.rxPackets],
        ['receive_packets_dropped', each.rxDropped],
        ['receive_errors', each.rxErrors],
        ['transmit_bytes', each.txBytes],
        ['transmit_packets', each.txPackets],
        ['transmit_packets_dropped', each.txDropped],
        ['transmit_errors', each.txErrors],
      ] as const
    ).map(([what, value]) => ({ name: `network_${what}_total`, labels: { interface: each.name }, value })),
  );
}

/** A block device of the machine. */
export interface BlockDevice {
  /** Device number of the block device, such as 8:0. */
  readonly id: string;
  /** Path of the block device, such as /dev/sda. */
  readonly device: string;
  readonly counts: readonly number[];
  /** All mounts of the machine, used to map paths to devices. */
  readonly mounts: readonly Mount[];
}

/** The columns of /proc/diskstats in order; see the kernel's Documentation/admin-guide/iostats. */
const counted = [
  ['fs_reads_total', 1],
  ['fs_reads_merged_total', 1],
  ['fs_sector_reads_total', 1],
  ['fs_read_seconds_total', 1_000],
  ['fs_writes_total', 1],
  ['fs_writes_merged_total', 1],
  ['fs_sector_writes_total', 1],
  ['fs_write_seconds_total', 1_000],
  ['fs_io_current', 1],
  ['fs_io_time_seconds_total', 1_000],
  ['fs_io_time_weighted_seconds_total', 1_000],
] as const;

export async function blockDevices(
  host: Pick<CgroupHost, 'read' | 'mountinfo'>,
): Promise<readonly BlockDevice[]> {
  const text = await host.read('/proc/diskstats').catch(() => '');
  const mounts = parseMountinfo(await host.mountinfo().catch(() => ''));
  return text.split('\n').flatMap((line) => {
    const [major = '', minor = '', name = '', ...counts] = line.trim().split(/\s+/);
    return name === ''
      ? []
      : [{ id: `${major}:${minor}`, device: `/dev/${name}`, counts: counts.map(Number), mounts }];
  });
}

/** Returns the device number of the block device that contains the first of the file systems. */
function mainDevice(
  [first]: readonly BlockDevice[],
  disks: ReadonlyMap<string, FileSystemSpace>,
): string | undefined {
  const [path] = disks.keys();
  return path === undefined ? undefined : mountOf(path, first?.mounts ?? [])?.device;
}

/** Returns the disk metrics of mounted block devices. */
function diskMeasures(
  devices: readonly BlockDevice[],
  disks: ReadonlyMap<string, FileSystemSpace>,
): readonly Measure[] {
  const [{ mounts } = { mounts: [] }] = devices;
  const mounted = new Set(mounts.map(({ device }) => device));
  const spaces = new Map([...disks].map(([path, space]) => [mountOf(path, mounts)?.device, space]));
  return devices
    .filter(({ id }) => mounted.has(id))
    .flatMap(({ id, device, counts }) => {
      const labels = { device };
      const space = spaces.get(id);
      return [
        ...counted.map(([name, per], index) => ({ name, labels, value: scaled(counts[index], per) })),
        { name: 'fs_usage_bytes', labels, value: space?.usedBytes },
        { name: 'fs_limit_bytes', labels, value: space?.capacityBytes },
        { name: 'fs_inodes_total', labels, value: space?.inodes },
        { name: 'fs_inodes_free', labels, value: space?.inodesFree },
      ];
    });
}

function scaled(value: number | undefined, per: number): number | undefined {
  return value === undefined ? undefined : value / per;
}

import type { CgroupHost, CgroupLayout } from '../../lib/index.ts';
import { weightToShares } from '../../lib/index.ts';
import { field, numberIn } from './cgroup-usage.ts';

/** One cgroup metric; its name lacks the common prefix `container_`. */
export interface Measure {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Value of the metric; undefined when the kernel does not report it. */
  readonly value: number | undefined;
}

/** Reads a file of the cgroup; with cgroups v1, from the tree of the given controller. */
type Files = (controller: string, name: string) => string | undefined;

/** Ticks per second of CPU times that the kernel reports in ticks. */
const ticks = 100;
const noLimit = 2 ** 62;

/**
 * Returns all metrics from the files of a cgroup. `deviceName` maps device numbers such as `8:0`.
 */
export function cgroupMeasures(
  layout: CgroupLayout,
  path: string,
  host: Pick<CgroupHost, 'readSync'>,
  deviceName: (id: string) => string,
): readonly Measure[] {
  const below = path === '/' ? '' : path;
  const files: Files = (controller, name) => {
    const root = layout.version === 2 ? layout.root : layout.controllers.get(controller);
    return root === undefined ? undefined : host.readSync(`${root}${below}/${name}`);
  };
  const parts =
    layout.version === 2
      ? [unifiedCpu, unifiedMemory, unifiedDisk, pressure]
      : [splitCpu, splitMemory, splitDisk];
  const all = [...parts, processes].flatMap((part) => part(files, deviceName));
  return all.filter(({ value }) => value !== undefined);
}

const cpuFields = {
  user: field('user'),
  system: field('system'),
  periods: field('nr_periods'),
  throttled: field('nr_throttled'),
  throttledTime: field('throttled_time'),
  usageMicros: field('usage_usec'),
  userMicros: field('user_usec'),
  systemMicros: field('system_usec'),
  throttledMicros: field('throttled_usec'),
};

function splitCpu(file: Files): readonly Measure[] {
  const counted = file('cpuacct', 'cpuacct.stat') ?? '';
  const throttled = file('cpu', 'cpu.stat') ?? '';
  return [
    {
      name: 'cpu_usage_seconds_total',
      labels: { cpu: 'total' },
      value: scaled(numberIn(file('cpuacct', 'cpuacct.usage')), 1e9),
    },
    { name: 'cpu_user_seconds_total', value: scaled(cpuFields.user(counted), ticks) },
    { name: 'cpu_system_seconds_total', value: scaled(cpuFields.system(counted), ticks) },
    { name: 'cpu_cfs_periods_total', value: cpuFields.periods(throttled) },
    { name: 'cpu_cfs_throttled_periods_total', value: cpuFields.throttled(throttled) },
    { name: 'cpu_cfs_throttled_seconds_total', value: scaled(cpuFields.throttledTime(throttled), 1e9) },
    { name: 'spec_cpu_period', value: numberIn(file('cpu', 'cpu.cfs_period_us')) },
    // A negative quota means no limit and is omitted.
    { name: 'spec_cpu_quota', value: numberIn(file('cpu', 'cpu.cfs_quota_us')) },
    { name: 'spec_cpu_shares', value: numberIn(file('cpu', 'cpu.shares')) },
  ];
}

function unifiedCpu(file: Files): readonly Measure[] {
  const counted = file('cpu', 'cpu.stat') ?? '';
  const [quota, period] = (file('cpu', 'cpu.max') ?? '').trim().split(' ');
  const weight = file('cpu', 'cpu.weight')?.trim();
  return [
    {
      name: 'cpu_usage_seconds_total',
      labels: { cpu: 'total' },
      value: scaled(cpuFields.usageMicros(counted), 1e6),
    },
    { name: 'cpu_user_seconds_total', value: scaled(cpuFields.userMicros(counted), 1e6) },
    { name: 'cpu_system_seconds_total', value: scaled(cpuFields.systemMicros(counted), 1e6) },
    { name: 'cpu_cfs_periods_total', value: cpuFields.periods(counted) },
    { name: 'cpu_cfs_throttled_periods_total', value: cpuFields.throttled(counted) },
    { name: 'cpu_cfs_throttled_seconds_total', value: scaled(cpuFields.throttledMicros(counted), 1e6) },
    { name: 'spec_cpu_period', value: numberIn(period) },
    { name: 'spec_cpu_quota', value: numberIn(quota) },
    { name: 'spec_cpu_shares', value: weight ? weightToShares(Number(weight)) : undefined },
  ];
}

const memoryFields = {
  inactive: field('total_inactive_file'),
  cache: field('total_cache'),
  rss: field('total_rss'),
  swap: field('total_swap'),
  mapped: field('total_mapped_file'),
  faults: field('pgfault'),
  majorFaults: field('pgmajfault'),
  allFaults: field('total_pgfault'),
  allMajorFaults: field('total_pgmajfault'),
  oomKills: field('oom_kill'),
  anon: field('anon'),
  file: field('file'),
  inactiveFile: field('inactive_file'),
  fileMapped: field('file_mapped'),
  atMost: field('max'),
};

function splitMemory(file: Files): readonly Measure[] {
  const of = (name: string) => numberIn(file('memory', `memory.${name}`));
  const counted = file('memory', 'memory.stat') ?? '';
  return [
    ...memory({
      usage: of('usage_in_bytes'),
      inactive: memoryFields.inactive(counted),
      cache: memoryFields.cache(counted),
      rss: memoryFields.rss(counted),
      swap: memoryFields.swap(counted),
      mapped: memoryFields.mapped(counted),
      peak: of('max_usage_in_bytes'),
      failures: of('failcnt'),
      oomKills: memoryFields.oomKills(file('memory', 'memory.oom_control') ?? ''),
      limit: of('limit_in_bytes'),
      swapLimit: of('memsw.limit_in_bytes'),
      reservation: of('soft_limit_in_bytes'),
    }),
    ...faults('container', memoryFields.faults(counted), memoryFields.majorFaults(counted)),
    ...faults('hierarchy', memoryFields.allFaults(counted), memoryFields.allMajorFaults(counted)),
  ];
}

function unifiedMemory(file: Files): readonly Measure[] {
  const of = (name: string) => numberIn(file('memory', `memory.${name}`));
  const counted = file('memory', 'memory.stat') ?? '';
  const events = file('memory', 'memory.events') ?? '';
  const [pgfault, pgmajfault] = [memoryFields.faults(counted), memoryFields.majorFaults(counted)];
  const [anon, files] = [memoryFields.anon(counted), memoryFields.file(counted)];
  // The root cgroup has no memory.current, so anonymous and file memory are added.
  const total = anon === undefined || files === undefined ? undefined : anon + files;
  return [
    ...memory({
      usage: of('current') ?? total,
      inactive: memoryFields.inactiveFile(counted),
      cache: files,
      rss: anon,
      swap: of('swap.current'),
      mapped: memoryFields.fileMapped(counted),
      peak: of('peak'),
      failures: memoryFields.atMost(events),
      oomKills: memoryFields.oomKills(events),
      limit: of('max'),
      swapLimit: of('swap.max'),
      reservation: of('min'),
    }),
    ...faults('container', pgfault, pgmajfault),
    ...faults('hierarchy', pgfault, pgmajfault),
  ];
}

type MemoryParts = Readonly<
  Record<
    | 'usage'
    | 'inactive'
    | 'cache'
    | 'rss'
    | 'swap'
    | 'mapped'
    | 'peak'
    | 'failures'
    | 'oomKills'
    | 'limit'
    | 'swapLimit'
    | 'reservation',
    number | undefined
  >
>;

function memory(parts: MemoryParts): readonly Measure[] {
  const { usage, inactive = 0 } = parts;
  return [
    { name: 'memory_cache', value: parts.cache },
    { name: 'memory_rss', value: parts.rss },
    { name: 'memory_swap', value: parts.swap },
    { name: 'memory_mapped_file', value: parts.mapped },
    { name: 'memory_usage_bytes', value: usage },
    { name: 'memory_max_usage_bytes', value: parts.peak },
    {
      name: 'memory_working_set_bytes',
      value: usage === undefined ? undefined : Math.max(usage - inactive, 0),
    },
    { name: 'memory_failcnt', value: parts.failures },
    { name: 'oom_events_total', value: parts.oomKills },
    { name: 'spec_memory_limit_bytes', value: limitOf(parts.limit) },
    { name: 'spec_memory_swap_limit_bytes', value: limitOf(parts.swapLimit) },
    { name: 'spec_memory_reservation_limit_bytes', value: limitOf(parts.reservation) },
  ];
}

function faults(scope: string, minor: number | undefined, major: number | undefined): readonly Measure[] {
  const name = 'memory_failures_total';
  return [
    { name, labels: { failure_type: 'pgfault', scope }, value: minor },
    { name, labels: { failure_type: 'pgmajfault', scope }, value: major },
  ];
}

const moves = /^(\d+:\d+) (Read|Write) (\d+)$/gm;

function splitDisk(file: Files, deviceName: (id: string) => string): readonly Measure[] {
  const rows = (name: string) => [...(file('blkio', `blkio.throttle.${name}`) ?? '').matchAll(moves)];
  return [
    ...rows('io_service_bytes').flatMap(([, id = '', direction = '', value]) =>
      moved(id, direction, 'bytes', Number(value), deviceName),
    ),
    ...rows('io_serviced').flatMap(([, id = '', direction = '', value]) =>
      moved(id, direction, 'times', Number(value), deviceName),
    ),
  ];
}

function unifiedDisk(file: Files, deviceName: (id: string) => string): readonly Measure[] {
  const lines = (file('io', 'io.stat') ?? '').split('\n').map((line) => line.split(' '));
  return lines.flatMap(([id = '', ...words]) => {
    const values = new Map(words.map((word) => word.split('=', 2) as [string, string]));
    return (
      [
        ['rbytes', 'Read', 'bytes'],
        ['wbytes', 'Write', 'bytes'],
        ['rios', 'Read', 'times'],
        ['wios', 'Write', 'times'],
      ] as const
    ).flatMap(([key, direction, unit]) => {
      const value = numberIn(values.get(key));
      return value === undefined ? [] : moved(id, direction, unit, value, deviceName);
    });
  });
}

function moved(
  id: string,
  direction: string,
  unit: 'bytes' | 'times',
  value: number,
  deviceName: (id: string) => string,
): readonly Measure[] {
  const [major = '', minor = ''] = id.split(':');
  const device = deviceName(id);
  const what = direction === 'Read' ? 'reads' : 'writes';
  if (unit === 'times') return [{ name: `fs_${what}_total`, labels: { device }, value }];
  return [
    { name: `fs_${what}_bytes_total`, labels: { device }, value },
    { name: 'blkio_device_usage_total', labels: { device, major, minor, operation: direction }, value },
  ];
}

/**
 * Zero disk metrics of a device, because the kernel reports none before its first read or write.
 */
export function nothingMoved(id: string, deviceName: (id: string) => string): readonly Measure[] {
  return (['bytes', 'times'] as const).flatMap((unit) =>
    ['Read', 'Write'].flatMap((direction) => moved(id, direction, unit, 0, deviceName)),
  );
}

const waited = { some: /^some .*total=(\d+)/m, full: /^full .*total=(\d+)/m };

function pressure(file: Files): readonly Measure[] {
  return ['cpu', 'memory', 'io'].flatMap((what) => {
    const text = file(what, `${what}.pressure`) ?? '';
    const total = (kind: RegExp) => scaled(numberIn(kind.exec(text)?.[1]), 1e6);
    return [
      { name: `pressure_${what}_waiting_seconds_total`, value: total(waited.some) },
      { name: `pressure_${what}_stalled_seconds_total`, value: total(waited.full) },
    ];
  });
}

function processes(file: Files): readonly Measure[] {
  const max = file('pids', 'pids.max');
  return [
    { name: 'threads', value: numberIn(file('pids', 'pids.current')) },
    { name: 'threads_max', value: max?.trim() === 'max' ? 0 : numberIn(max) },
  ];
}

function scaled(value: number | undefined, by: number): number | undefined {
  return value === undefined ? undefined : value / by;
}

/** Returns a cgroup's limit; 0 when there is none, as in cAdvisor. */
function limitOf(value: number | undefined): number {
  return value === undefined || value > noLimit ? 0 : value;
}

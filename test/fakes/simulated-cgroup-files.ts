/**
 * Returns the files of a new cgroup, and simulates the kernel's result of writing a value to one.
 */

export type Refusal = 'EINVAL' | 'EBUSY' | 'EACCES' | 'ENOENT' | 'ENOSPC';
type Files = Map<string, string>;

const unlimited = '9223372036854771712';

const v1: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  cpu: { 'cpu.shares': '1024', 'cpu.cfs_period_us': '100000', 'cpu.cfs_quota_us': '-1' },
  cpuacct: { 'cpuacct.usage': '0' },
  cpuset: { 'cpuset.cpus': '', 'cpuset.mems': '' },
  memory: {
    'memory.limit_in_bytes': unlimited,
    'memory.usage_in_bytes': '0',
    'memory.max_usage_in_bytes': '0',
    'memory.memsw.limit_in_bytes': unlimited,
  },
  pids: { 'pids.max': 'max' },
  hugetlb: { 'hugetlb.2MB.limit_in_bytes': unlimited },
};

const v2: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  cpu: { 'cpu.weight': '100', 'cpu.max': 'max 100000' },
  cpuset: { 'cpuset.cpus': '', 'cpuset.mems': '', 'cpuset.cpus.effective': '' },
  memory: { 'memory.max': 'max', 'memory.current': '0', 'memory.swap.max': 'max' },
  pids: { 'pids.max': 'max' },
  hugetlb: { 'hugetlb.2MB.max': 'max' },
};

export function filesOfV1(controllers: readonly string[]): Files {
  return new Map(controllers.flatMap((name) => Object.entries(v1[name] ?? {})));
}

export function filesOfV2(controllers: readonly string[]): Files {
  const own = controllers.flatMap((name) => Object.entries(v2[name] ?? {}));
  return new Map([['cgroup.controllers', controllers.join(' ')], ['cgroup.subtree_control', ''], ...own]);
}

export interface Surroundings {
  readonly own: ReadonlyMap<string, string>;
  readonly parent: ReadonlyMap<string, string> | undefined;
}

export type Written = { readonly value: string } | { readonly refused: Refusal };
type Rule = (value: string, at: Surroundings) => Written;

const einval: Written = { refused: 'EINVAL' };

const rules: Readonly<Record<string, Rule>> = {
  'cpu.shares': (value) =>
    whole(value, (shares) => ({ value: String(Math.min(262_144, Math.max(2, shares))) })),
  'cpu.weight': (value) => whole(value, (weight) => (weight < 1 || weight > 10_000 ? einval : { value })),
  'cpu.cfs_period_us': (value) => whole(value, (us) => (us < 1000 || us > 1_000_000 ? einval : { value })),
  'cpu.cfs_quota_us': (value) =>
    whole(value, (us) => (us < 0 ? { value: '-1' } : us < 1000 ? einval : { value })),
  'cpu.max': (value) => (/^(max|[1-9]\d{3,}) \d{4,7}$/.test(value) ? { value } : einval),
  'memory.limit_in_bytes': (value, at) => whole(value, (bytes) => limitMemory(bytes, at)),
  'memory.memsw.limit_in_bytes': (value, { own }) =>
    whole(value, (bytes) => {
      const limit = bytes < 0 ? Number(unlimited) : bytes;
      return limit < Number(own.get('memory.limit_in_bytes')) ? einval : { value: pages(limit) };
    }),
  'memory.max': (value) => (value === 'max' ? { value } : whole(value, (bytes) => ({ value: pages(bytes) }))),
  'pids.max': (value) =>
    value === 'max' ? { value } : whole(value, (count) => (count < 0 ? einval : { value })),
  'cpuset.cpus': withinParent('cpuset.cpus'),
  'cpuset.mems': withinParent('cpuset.mems'),
};

export function interpret(name: string, value: string, at: Surroundings): Written {
  return rules[name]?.(value.trim(), at) ?? { value };
}

function whole(value: string, then: (number: number) => Written): Written {
  return /^-?\d+$/.test(value) ? then(Number(value)) : einval;
}

function limitMemory(bytes: number, { own }: Surroundings): Written {
  const limit = bytes < 0 ? Number(unlimited) : bytes;
  if (limit > Number(own.get('memory.memsw.limit_in_bytes') ?? limit)) return einval;
  if (limit < Number(own.get('memory.usage_in_bytes') ?? 0)) return { refused: 'EBUSY' };
  return { value: pages(limit) };
}

/** The kernel rounds memory limits to pages. */
function pages(bytes: number): string {
  return bytes >= Number(unlimited) ? unlimited : String(bytes - (bytes % 4096));
}

/** In cgroup v1 a value must not exceed that of the parent cgroup. */
function withinParent(file: string): Rule {
  return (value, { own, parent }) => {
    const isV2 = own.has('cgroup.controllers');
    const above = parent?.get(file);
    return !isV2 && above !== undefined && above === '' ? { refused: 'EACCES' } : { value };
  };
}

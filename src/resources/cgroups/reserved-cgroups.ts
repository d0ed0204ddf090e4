import { describeError, KubelingError, quantityValue } from '../../lib/index.ts';
import { cpuShares, memoryOf, milliCpuOf, readResources } from '../../pods/index.ts';
import type { CgroupManager } from './cgroup-manager.ts';
import type { CgroupValues } from './cgroup-values.ts';

/** An existing cgroup whose limits are set to a reservation, such as systemReserved. */
export interface ReservedCgroup {
  readonly of: 'system' | 'kube';
  /** The configured path of the cgroup, relative to the root of each controller tree. */
  readonly path: string;
  readonly held: 'all' | 'compressible';
  readonly values: CgroupValues;
}

/** The configuration fields that concern reserved cgroups. */
export interface ReservedCgroupConfig {
  readonly systemReserved: Readonly<Record<string, string>>;
  readonly kubeReserved: Readonly<Record<string, string>>;
  readonly systemReservedCgroup: string;
  readonly kubeReservedCgroup: string;
  readonly enforceNodeAllocatable: readonly string[];
}

export function reservedCgroups(config: ReservedCgroupConfig): readonly ReservedCgroup[] {
  const requested = new Set(config.enforceNodeAllocatable);
  return (['system', 'kube'] as const).flatMap((of) => {
    const held = requested.has(`${of}-reserved`)
      ? 'all'
      : requested.has(`${of}-reserved-compressible`)
        ? 'compressible'
        : undefined;
    if (held === undefined) return [];
    const values = valuesOf(config[`${of}Reserved`], held);
    return [{ of, held, path: config[`${of}ReservedCgroup`], values }];
  });
}

/**
 * Returns the limits of a reserved cgroup; resources without a reservation are not limited.
 * `compressible` limits only CPU.
 */
function valuesOf(reserved: Readonly<Record<string, string>>, held: ReservedCgroup['held']): CgroupValues {
  const list = readResources(reserved);
  const cpu = list.has('cpu') ? { cpuShares: Number(cpuShares(milliCpuOf(list))) } : {};
  if (held === 'compressible') return cpu;
  const pids = list.get('pid');
  return {
    ...cpu,
    ...(list.has('memory') ? { memoryBytes: Number(memoryOf(list)) } : {}),
    ...(pids === undefined ? {} : { pidsLimit: Number(quantityValue(pids)) }),
  };
}

export interface AllocatableEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: 'NodeAllocatableEnforced' | 'FailedNodeAllocatableEnforcement';
  readonly message: string;
}

/**
 * Limits the reserved cgroups. Throws RESERVED_CGROUP, also reported as event, for the first cgroup
 * that is missing or rejects its limits.
 */
export async function enforceReservedCgroups(
  cgroups: Pick<CgroupManager, 'parse' | 'missing' | 'update'>,
  reserved: readonly ReservedCgroup[],
  tell: (event: AllocatableEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  for (const one of reserved) {
    try {
      await hold(cgroups, one, signal);
    } catch (error) {
      signal.throwIfAborted();
      const message = `Failed to enforce ${title(one)} Cgroup Limits on "${one.path}": ${describeError(error)}`;
      tell({ type: 'Warning', reason: 'FailedNodeAllocatableEnforcement', message });
      throw new KubelingError('RESERVED_CGROUP', message, { cause: error });
    }
    const message = `Updated limits on ${one.of} reserved cgroup ${one.path}`;
    tell({ type: 'Normal', reason: 'NodeAllocatableEnforced', message });
  }
}

async function hold(
  cgroups: Pick<CgroupManager, 'parse' | 'missing' | 'update'>,
  { of, path, values }: ReservedCgroup,
  signal: AbortSignal,
): Promise<void> {
  const name = cgroups.parse(path);
  const missing = await cgroups.missing(name);
  if (missing.length > 0)
    throw new KubelingError(
      'RESERVED_CGROUP',
      `${of}ReservedCgroup must name an existing cgroup: missing are ${missing.join(', ')}`,
    );
  await cgroups.update(name, values, signal);
}

function title({ of, held }: ReservedCgroup): string {
  const whose = of === 'system' ? 'System' : 'Kube';
  return `${whose} Reserved${held === 'compressible' ? ' Compressible' : ''}`;
}

import { KubelingError } from '../../lib/index.ts';
import type { MachineFacts } from './machine-facts.ts';

/** The parts of the configuration that ask for something of the machine. */
export interface MachineDemands {
  readonly failSwapOn: boolean;
  readonly failCgroupV1: boolean;
  readonly swapBehavior: string;
  /** Undefined when the configuration leaves it to the machine. */
  readonly singleProcessOomKill: boolean | undefined;
}

/** Throws MACHINE_UNFIT naming all that the configuration asks for and this machine is not. */
export function checkMachine(
  demands: MachineDemands,
  { swaps }: Pick<MachineFacts, 'swaps'>,
  cgroups: 1 | 2,
): void {
  const problems = [
    demands.failSwapOn && swaps.length > 0
      ? `failSwapOn must be false on a machine that swaps: it swaps to ${swaps.join(', ')}; else run swapoff -a`
      : undefined,
    demands.failCgroupV1 && cgroups === 1
      ? 'failCgroupV1 must be false on a machine with cgroups v1; else boot it with cgroups v2'
      : undefined,
    demands.swapBehavior === 'LimitedSwap' && cgroups === 1
      ? 'memorySwap.swapBehavior must be NoSwap on a machine with cgroups v1: current value is LimitedSwap'
      : undefined,
    demands.singleProcessOomKill === false && cgroups === 1
      ? 'singleProcessOOMKill must be true or left out on a machine with cgroups v1: current value is false'
      : undefined,
  ].filter((problem) => problem !== undefined);
  if (problems.length === 0) return;
  throw new KubelingError('MACHINE_UNFIT', `Cannot run pods on this machine as ${problems.join('; and ')}`, {
    details: { problems },
  });
}

import { describeError, type Logger } from '../../lib/index.ts';
import { formatCpuSet } from '../cpu/cpu-set.ts';
import { cpuStateFile, encodeCpuCheckpoint } from '../cpu/cpu-state.ts';
import type { MachineFiles } from '../machine/machine-facts.ts';
import { encodeMemoryCheckpoint, memoryStateFile } from '../memory/memory-checkpoint.ts';
import { readMachineTopology } from '../topology/machine-topology.ts';
import type { StateFile } from './state-checkpoint.ts';

export interface PlacedContainer {
  readonly id: string;
  readonly cpus: ReadonlySet<number>;
  readonly mems: ReadonlySet<number>;
}

export interface ResetStaticPoliciesDeps {
  readonly logger: Logger;
  readonly files: MachineFiles;
  readonly stateFile: (name: string) => StateFile;
  /** Returns the running containers with their CPUs and NUMA nodes. */
  readonly placed: (signal: AbortSignal) => Promise<readonly PlacedContainer[]>;
  readonly update: (
    containerId: string,
    where: { readonly cpusetCpus?: string; readonly cpusetMems?: string },
    signal: AbortSignal,
  ) => Promise<void>;
}

/**
 * Reverts the effects of a static policy that is no longer configured: allows the containers all
 * CPUs or NUMA nodes again and resets the checkpoint.
 */
export async function resetStaticPolicies(
  left: readonly ('cpu' | 'memory')[],
  parts: ResetStaticPoliciesDeps,
  signal: AbortSignal,
): Promise<void> {
  const { cpus, numaNodes } = await readMachineTopology(parts.files);
  const all = formatCpuSet(new Set(cpus.keys()));
  const allNodes = formatCpuSet(new Set(numaNodes.map(({ id }) => id)));
  for (const container of await parts.placed(signal)) {
    const where = {
      ...(left.includes('cpu') && container.cpus.size > 0 && { cpusetCpus: all }),
      ...(left.includes('memory') && container.mems.size > 0 && { cpusetMems: allNodes }),
    };
    if (Object.keys(where).length > 0) await unpin(container, where, parts, signal);
  }
  if (left.includes('cpu')) {
    const state = { defaultCpuSet: new Set<number>(), assignments: new Map() };
    await parts.stateFile(cpuStateFile).write(encodeCpuCheckpoint({ policyName: 'none', state }));
  }
  if (left.includes('memory')) {
    const state = { machine: new Map(), assignments: new Map() };
    await parts.stateFile(memoryStateFile).write(encodeMemoryCheckpoint({ policyName: 'None', state }));
  }
}

async function unpin(
  { id }: PlacedContainer,
  where: { readonly cpusetCpus?: string; readonly cpusetMems?: string },
  { update, logger }: ResetStaticPoliciesDeps,
  signal: AbortSignal,
): Promise<void> {
  try {
    await update(id, where, signal);
  } catch (error) {
    signal.throwIfAborted();
    const fields = { containerId: id, error: describeError(error) };
    logger.warn('Failed to unpin a container after a policy change', fields);
  }
}

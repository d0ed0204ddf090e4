import { posix } from 'node:path';
import type { Pod, PodJournal, PodUid } from '../pods/index.ts';
import {
  AllocationManager,
  type AllocationManagerDeps,
  infeasibility,
  PodResourceFile,
  ResizeConditions,
  resizeMetrics,
} from '../resources/index.ts';
import { mayUseSwap } from '../runtime/index.ts';
import type { KubeletDeps } from './kubelet-deps.ts';
import type { NodeJournal } from './node-journal.ts';
import type { KubeletSettings } from './settings.ts';

export interface AllocationParts
  extends Pick<AllocationManagerDeps, 'findPod' | 'areSourcesReady' | 'judge' | 'syncPod'> {
  readonly journal: PodJournal;
  readonly node: Pick<NodeJournal, 'event'>;
}

/** What this node has set aside for pods, and what the runtime was told of it: each in the file other kubelets know. */
export class NodeAllocation {
  readonly manager: AllocationManager;
  readonly allocated: PodResourceFile;
  readonly actuated: PodResourceFile;
  readonly conditions: ResizeConditions;

  constructor(settings: KubeletSettings, deps: KubeletDeps, parts: AllocationParts) {
    const { clock, logger, metrics } = deps;
    this.allocated = resourceFile('allocated_pods_state', settings, deps, parts);
    this.actuated = resourceFile('actuated_pods_state', settings, deps, parts);
    const conditions = new ResizeConditions(clock);
    this.conditions = conditions;
    this.manager = new AllocationManager({
      ...parts,
      clock,
      logger,
      conditions,
      allocated: this.allocated,
      actuated: this.actuated,
      infeasibility: (pod, allocated) => infeasibility(pod, allocated, limitsOf(settings)),
      observer: resizeMetrics(metrics, () => conditions.counts()),
    });
  }

  async open(): Promise<void> {
    await Promise.all([this.allocated.open(), this.actuated.open()]);
  }

  /** Nothing is remembered of others. */
  retain(isKept: (uid: PodUid) => boolean): void {
    this.manager.retain(isKept);
    this.actuated.retain(isKept);
  }

  /** What is remembered of pods. */
  held(): Readonly<Record<'allocated' | 'actuated' | 'resizes' | 'pending', number>> {
    return {
      allocated: this.allocated.size,
      actuated: this.actuated.size,
      resizes: this.conditions.size,
      pending: this.manager.size,
    };
  }
}

function resourceFile(
  name: string,
  { rootDir }: KubeletSettings,
  { logger, machine }: KubeletDeps,
  { node }: AllocationParts,
): PodResourceFile {
  const path = posix.join(rootDir, name);
  const spoilt = (what: string) => {
    const message = `${what}. What pods have is taken from their statuses and from the runtime instead`;
    logger.warn(message, { path });
    node.event({ type: 'Warning', reason: 'CheckpointCorrupt', message });
  };
  return new PodResourceFile({ path, files: machine.files, logger, spoilt });
}

function limitsOf({ node, isGateEnabled, exclusive }: KubeletSettings) {
  return {
    mayUseSwap: (pod: Pod, container: Pod['spec']['containers'][number]) => mayUseSwap(pod, container, node),
    exclusive: {
      cpu: exclusive?.cpu === true && !isGateEnabled('InPlacePodVerticalScalingExclusiveCPUs'),
      memory: exclusive?.memory === true && !isGateEnabled('InPlacePodVerticalScalingExclusiveMemory'),
    },
    podLevel: isGateEnabled('InPlacePodLevelResourcesVerticalScaling'),
  };
}

import type { PodStanding } from '../checkpoints/index.ts';
import type { Node } from '../kinds/index.ts';
import type { Clock, Logger, MetricRegistry } from '../lib/index.ts';
import type { Pod, PodJournal, PodUid } from '../pods/index.ts';
import {
  type AdmissionFacts,
  type AdmissionOperation,
  type Allotter,
  admissionMetrics,
  declaredFeatures,
  PodAdmitter,
  preempted,
} from '../resources/index.ts';
import { killPodNow, type PodWorkers, type StatusFn } from '../workers/index.ts';
import { kernelProblems } from './admission.ts';
import type { RuntimeAbilities } from './runtime-abilities.ts';
import type { KubeletSettings } from './settings.ts';

export interface NodeAdmissionParts {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: MetricRegistry;
  readonly journal: Pick<PodJournal, 'event'>;
  readonly workers: () => Pick<PodWorkers, 'updatePod' | 'queries'>;
  /** Our Node as newly as it is known. */
  readonly node: () => Node | undefined;
  readonly fetchNode: (signal: AbortSignal) => Promise<Node>;
  readonly standing: (pod: Pod) => PodStanding;
  /** Pods that use, or will use, resources of the node, without that one and without those that came after it. */
  readonly beside: (pod: Pod) => readonly Pod[];
  readonly abilities: () => RuntimeAbilities;
  readonly isShuttingDown: () => boolean;
  readonly wasAdmitted: (uid: PodUid) => boolean;
  readonly allotter?: Allotter | undefined;
  readonly nodeFor?: ((pod: Pod, node: Node) => Node) | undefined;
  /** What the node is short of. */
  readonly pressures: () => readonly string[];
}

/** By labels, taints, resources and all else, with room made for critical pods. */
export function nodeAdmission(settings: KubeletSettings, parts: NodeAdmissionParts): PodAdmitter {
  const { clock, logger, metrics, fetchNode, wasAdmitted, allotter } = parts;
  return new PodAdmitter({
    clock,
    logger,
    facts: (pod, operation) => factsFor(pod, operation, settings, parts),
    fetchNode,
    preempt: (victim, signal) => preempt(victim, parts, signal),
    // What was admitted is noted with the pod itself, before anything of it is made.
    admitted: { has: wasAdmitted, add() {} },
    allotter,
    underPressure: settings.underPressure,
    observer: admissionMetrics(metrics),
  });
}

function factsFor(
  pod: Pod,
  operation: AdmissionOperation,
  settings: KubeletSettings,
  parts: NodeAdmissionParts,
): AdmissionFacts {
  const { isGateEnabled } = settings;
  const declared = declaredFeatures(isGateEnabled);
  // What a pod that lives here asks for in addition it has to ask for like any other.
  const standing = operation === 'resize' ? 'new' : parts.standing(pod);
  const node = parts.node();
  // One that lives here stays, whoever else there is.
  const others = standing === 'restored' ? [] : parts.beside(pod);
  const { queries } = parts.workers();
  const ending = others.filter(
    ({ metadata }) =>
      metadata.deletionTimestamp !== undefined || queries.isPodTerminationRequested(metadata.uid),
  );
  return {
    standing,
    node: node && (parts.nodeFor?.(pod, node) ?? node),
    others,
    ending: new Set(ending.map(({ metadata }) => metadata.uid)),
    pressures: parts.pressures(),
    isShuttingDown: parts.isShuttingDown(),
    strictGroups: parts.abilities().strictGroups,
    tolerationRules: isGateEnabled('TaintTolerationComparisonOperators') ? 'with-comparisons' : 'plain',
    podLevelResources: isGateEnabled('PodLevelResources'),
    declaredFeatures: declared && new Set(declared),
    ...kernelProblems(pod, settings),
  };
}

async function preempt(victim: Pod, parts: NodeAdmissionParts, signal: AbortSignal): Promise<void> {
  const { clock, journal, workers } = parts;
  journal.event(victim, preempted.event);
  const options = { why: 'eviction', statusFn: asPreempted } as const;
  await killPodNow({ clock, journal, workers: workers() }, victim, options, signal);
}

const asPreempted: StatusFn = (status) => ({
  ...status,
  ...preempted.status,
  conditions: [
    ...(status.conditions ?? []).filter(({ type }) => type !== preempted.condition.type),
    preempted.condition,
  ],
});

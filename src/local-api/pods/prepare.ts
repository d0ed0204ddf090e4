import { type JsonObject, sameValue } from '../../api/index.ts';
import type {
  Affinity,
  Container,
  EnvVar,
  LabelSelector,
  PodAffinityTerm,
  PodSpec,
  Volume,
} from '../../kinds/index.ts';
import { withPodDefaults } from '../../pods/defaults/index.ts';
import { computeQosClass, type Pod } from '../../pods/index.ts';
import type { StoredObject, WriteContext } from '../api/index.ts';
import { typed, withCondition, withFields, withSpec } from './pod-object.ts';
import { withPreservedStatus } from './pod-status.ts';
import { isFeatureEnabled, type SpecDecoder } from './spec-decoder.ts';

/** Applies defaults and server-set fields. */
export function preparePod(decoder: SpecDecoder, pod: StoredObject, write: WriteContext): StoredObject {
  const { before, subresource } = write;
  if (before === undefined) return asNewPod(withDefaults(decoder, pod), write);
  if (subresource === 'status') return withPreservedStatus(before, pod);
  if (subresource === 'binding') return withGeneration(pod, before.metadata.generation);
  // An unchanged spec is not decoded: most writes do not change it.
  return sameValue(before.spec, pod.spec) ? pod : withDefaults(decoder, pod);
}

function withDefaults(decoder: SpecDecoder, pod: StoredObject): StoredObject {
  const { spec } = withPodDefaults({ ...typed(pod), spec: decoder.decode(pod) }, isFeatureEnabled);
  return withSpec(pod, withAlwaysPresentFields(spec));
}

/** Increments the generation when the spec differs after defaulting. */
export function withUpdatedGeneration(
  pod: StoredObject,
  { before, subresource }: WriteContext,
): StoredObject {
  if (before === undefined || subresource === 'status' || subresource === 'binding') return pod;
  const generation = before.metadata.generation ?? 0;
  return withGeneration(pod, sameValue(before.spec, pod.spec) ? generation : generation + 1);
}

function withGeneration(pod: StoredObject, generation: number | undefined): StoredObject {
  return { ...pod, metadata: withFields(pod.metadata, { generation }) };
}

function asNewPod(pod: StoredObject, { clock }: WriteContext): StoredObject {
  const selecting = withSpec(pod, withGrace(withMatchedLabels(typed(pod).spec, pod.metadata.labels ?? {})));
  const status: JsonObject = { phase: 'Pending', qosClass: computeQosClass(selecting as unknown as Pod) };
  const prepared = withGeneration({ ...selecting, status }, 1);
  if ((typed(prepared).spec.schedulingGates ?? []).length === 0) return prepared;
  const message = 'Scheduling is blocked due to non-empty scheduling gates';
  const gated = { type: 'PodScheduled', status: 'False', reason: 'SchedulingGated', message } as const;
  return withCondition(prepared, gated, clock);
}

/** A negative grace period becomes one second. */
function withGrace(spec: PodSpec): PodSpec {
  return (spec.terminationGracePeriodSeconds ?? 0) < 0 ? { ...spec, terminationGracePeriodSeconds: 1 } : spec;
}

type Labels = Readonly<Record<string, string>>;

/** matchLabelKeys become label selector expressions with the values of this pod. */
function withMatchedLabels(spec: PodSpec, labels: Labels): PodSpec {
  const { affinity, topologySpreadConstraints } = spec;
  return withFields(spec, {
    affinity: affinity && matchedAffinity(affinity, labels),
    topologySpreadConstraints: topologySpreadConstraints?.map((one) => matched(one, labels)),
  });
}

const required = 'requiredDuringSchedulingIgnoredDuringExecution';
const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';

function matchedAffinity(affinity: Affinity, labels: Labels): Affinity {
  const kinds = (['podAffinity', 'podAntiAffinity'] as const).flatMap((kind) => {
    const given = affinity[kind];
    if (given === undefined) return [];
    const weighted = given[preferred]?.map((one) => ({
      ...one,
      podAffinityTerm: matched(one.podAffinityTerm, labels),
    }));
    const terms = given[required]?.map((one) => matched(one, labels));
    return [[kind, withFields(given, { [preferred]: weighted, [required]: terms })] as const];
  });
  return { ...affinity, ...Object.fromEntries(kinds) };
}

type Matching = Partial<Pick<PodAffinityTerm, 'labelSelector' | 'matchLabelKeys' | 'mismatchLabelKeys'>>;

function matched<T extends Matching>(term: T, labels: Labels): T {
  const { labelSelector, matchLabelKeys = [], mismatchLabelKeys = [] } = term;
  const added = [
    ...expressions(matchLabelKeys, 'In', labels),
    ...expressions(mismatchLabelKeys, 'NotIn', labels),
  ];
  if (labelSelector === undefined || added.length === 0) return term;
  const matchExpressions = [...(labelSelector.matchExpressions ?? []), ...added];
  return { ...term, labelSelector: { ...labelSelector, matchExpressions } };
}

type Expression = NonNullable<LabelSelector['matchExpressions']>[number];

function expressions(keys: readonly string[], operator: string, labels: Labels): readonly Expression[] {
  return keys.flatMap((key) => {
    const value = labels[key];
    return value === undefined ? [] : [{ key, operator, values: [value] }];
  });
}

/** Sets the pod fields that the API server returns even when a client has omitted them. */
function withAlwaysPresentFields(spec: PodSpec): PodSpec {
  return withFields(spec, {
    containers: spec.containers.map(withResources),
    initContainers: spec.initContainers?.map(withResources),
    ephemeralContainers: spec.ephemeralContainers?.map(withResources),
    volumes: spec.volumes?.map(withTemplateMeta),
  });
}

function withResources<T extends Container>(container: T): T {
  const env = container.env?.map(withDivisor);
  return { ...container, resources: container.resources ?? {}, ...(env && { env }) };
}

function withDivisor(variable: EnvVar): EnvVar {
  const resourceFieldRef = variable.valueFrom?.resourceFieldRef;
  if (resourceFieldRef === undefined || resourceFieldRef.divisor !== undefined) return variable;
  return {
    ...variable,
    valueFrom: { ...variable.valueFrom, resourceFieldRef: { ...resourceFieldRef, divisor: '0' } },
  };
}

function withTemplateMeta(volume: Volume): Volume {
  const template = volume.ephemeral?.volumeClaimTemplate;
  const items = volume.downwardAPI?.items?.map((item) =>
    item.resourceFieldRef === undefined || item.resourceFieldRef.divisor !== undefined
      ? item
      : { ...item, resourceFieldRef: { ...item.resourceFieldRef, divisor: '0' } },
  );
  return {
    ...volume,
    ...(items && { downwardAPI: { ...volume.downwardAPI, items } }),
    ...(template && {
      ephemeral: { volumeClaimTemplate: { ...template, metadata: template.metadata ?? {} } },
    }),
  };
}

import { type JsonObject, sameValue } from '../../api/index.ts';
import type { Container, NodeAffinity, NodeSelectorTerm, PodSpec, Toleration } from '../../kinds/index.ts';
import type { FieldCause, StoredObject } from '../api/index.ts';
import { forbiddenField, invalid } from '../validation/causes.ts';
import { changedPaths } from '../validation/changed-paths.ts';
import { isMirror, mirrorAnnotation, typed, withFields } from './pod-object.ts';

/** Validates an update of a pod; the old and the new pod are each valid. */
export function updateCauses(before: StoredObject, after: StoredObject): readonly FieldCause[] {
  const [old, spec] = [typed(before).spec, typed(after).spec];
  const counts = countCauses(old, spec);
  if (counts.length > 0) return [...annotationCauses(before, after), ...counts];
  return [
    ...annotationCauses(before, after),
    ...deadlineCauses(old, spec),
    ...tolerationCauses(old, spec),
    ...gateCauses(old, spec),
    ...gatedCauses(old, spec),
    ...immutableFieldCauses(old, spec),
  ];
}

const appArmorPrefix = 'container.apparmor.security.beta.kubernetes.io/';

/** Annotations that are immutable after the creation of a pod. */
export function annotationCauses(before: StoredObject, after: StoredObject): readonly FieldCause[] {
  const [old, next] = [before.metadata.annotations ?? {}, after.metadata.annotations ?? {}];
  const cause = (key: string, how: string) => {
    const field = `metadata.annotations[${key}]`;
    if (key.startsWith(appArmorPrefix)) return [forbiddenField(field, `may not ${how} AppArmor annotations`)];
    return key === mirrorAnnotation ? [forbiddenField(field, `may not ${how} mirror pod annotation`)] : [];
  };
  return [
    ...Object.keys(old).flatMap((key) => (next[key] === old[key] ? [] : cause(key, 'remove or update'))),
    ...Object.keys(next).flatMap((key) => (Object.hasOwn(old, key) ? [] : cause(key, 'add'))),
  ];
}

function countCauses(old: PodSpec, spec: PodSpec): readonly FieldCause[] {
  const list = (['containers', 'initContainers'] as const).find(
    (name) => (old[name] ?? []).length !== (spec[name] ?? []).length,
  );
  if (list === undefined) return [];
  return [forbiddenField(`spec.${list}`, 'pod updates may not add or remove containers')];
}

/** activeDeadlineSeconds may be set or shortened, but not extended or removed. */
function deadlineCauses(old: PodSpec, spec: PodSpec): readonly FieldCause[] {
  const field = 'spec.activeDeadlineSeconds';
  const [was, is] = [old.activeDeadlineSeconds, spec.activeDeadlineSeconds];
  if (was === undefined) return [];
  if (is === undefined)
    return [invalid(field, undefined, 'must not update from a positive integer to nil value')];
  return is > was ? [invalid(field, is, 'must be less than or equal to previous value')] : [];
}

function tolerationCauses(old: PodSpec, spec: PodSpec): readonly FieldCause[] {
  const kept = new Set((spec.tolerations ?? []).map(withoutSeconds));
  if ((old.tolerations ?? []).every((toleration) => kept.has(withoutSeconds(toleration)))) return [];
  const why = 'existing toleration can not be modified except its tolerationSeconds';
  return [forbiddenField('spec.tolerations', why)];
}

/**
 * The toleration as a set key: a pod may have tens of thousands of tolerations, too many for
 * pairwise comparison.
 */
function withoutSeconds({ key, operator, value, effect }: Toleration): string {
  return JSON.stringify([key, operator, value, effect]);
}

function gateCauses(old: PodSpec, spec: PodSpec): readonly FieldCause[] {
  const known = new Set((old.schedulingGates ?? []).map(({ name }) => name));
  return (spec.schedulingGates ?? []).flatMap(({ name }, index) =>
    known.has(name)
      ? []
      : [
          forbiddenField(
            `spec.schedulingGates[${index}].name`,
            `only deletion is allowed, but found new scheduling gate '${name}'`,
          ),
        ],
  );
}

function isGated(spec: PodSpec): boolean {
  return (spec.schedulingGates ?? []).length > 0;
}

/** While a pod has scheduling gates, its node selector and node affinity may be narrowed. */
function gatedCauses(old: PodSpec, spec: PodSpec): readonly FieldCause[] {
  if (!isGated(old)) return [];
  const selector = spec.nodeSelector ?? {};
  const isPreserved = Object.entries(old.nodeSelector ?? {}).every(([key, value]) => selector[key] === value);
  const why = 'only additions to spec.nodeSelector are allowed (no mutations or deletions)';
  return [
    ...(isPreserved ? [] : [invalid('spec.nodeSelector', selector, why)]),
    ...affinityCauses(old.affinity?.nodeAffinity, spec.affinity?.nodeAffinity),
  ];
}

const required = 'requiredDuringSchedulingIgnoredDuringExecution';
const termsPath = `spec.affinity.nodeAffinity.${required}.nodeSelectorTerms`;

function affinityCauses(
  old: NodeAffinity | undefined,
  next: NodeAffinity | undefined,
): readonly FieldCause[] {
  const was = old?.[required]?.nodeSelectorTerms ?? [];
  const is = next?.[required]?.nodeSelectorTerms ?? [];
  if (was.length === 0) return [];
  if (was.length !== is.length) {
    const why = 'no additions/deletions to non-empty NodeSelectorTerms list are allowed';
    return [invalid(termsPath, is, why)];
  }
  return was.flatMap((term, index) =>
    isNarrowed(term, is[index])
      ? []
      : [
          invalid(
            `${termsPath}[${index}]`,
            is[index],
            'only additions are allowed (no mutations or deletions)',
          ),
        ],
  );
}

function isNarrowed(old: NodeSelectorTerm, next: NodeSelectorTerm | undefined): boolean {
  if (sameValue(old, {}) || next === undefined) return sameValue(old, next);
  return (['matchExpressions', 'matchFields'] as const).every((list) =>
    (old[list] ?? []).every((one, index) => sameValue(one, next[list]?.[index])),
  );
}

const changeable = [
  '`spec.containers[*].image`',
  '`spec.initContainers[*].image`',
  '`spec.activeDeadlineSeconds`',
  '`spec.tolerations` (only additions to existing tolerations)',
  '`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)',
].join(',');

/** All other fields are immutable; the message lists the changed paths and a workaround. */
function immutableFieldCauses(old: PodSpec, spec: PodSpec): readonly FieldCause[] {
  const kept = withChangeable(old, spec);
  if (sameValue(kept, old)) return [];
  const paths = changedPaths(old, kept, 'spec').join(', ');
  const hint = 'to replace the pod by a new one use `kubectl replace --force`';
  const why = `pod updates may not change fields other than ${changeable}\nchanged: ${paths}; ${hint}`;
  return [forbiddenField('spec', why)];
}

/** The requested spec, with the mutable fields reset to their previous values for comparison. */
function withChangeable(old: PodSpec, spec: PodSpec): PodSpec {
  const isNegativeCorrected =
    (old.terminationGracePeriodSeconds ?? 0) < 0 && spec.terminationGracePeriodSeconds === 1;
  return withFields(spec, {
    containers: withImages(old.containers, spec.containers),
    initContainers: spec.initContainers && withImages(old.initContainers ?? [], spec.initContainers),
    activeDeadlineSeconds: old.activeDeadlineSeconds,
    tolerations: old.tolerations,
    schedulingGates: old.schedulingGates,
    terminationGracePeriodSeconds: isNegativeCorrected
      ? old.terminationGracePeriodSeconds
      : spec.terminationGracePeriodSeconds,
    ...(isGated(old)
      ? { nodeSelector: old.nodeSelector, affinity: withPreviousNodeAffinity(old, spec) }
      : {}),
  });
}

function withPreviousNodeAffinity(old: PodSpec, spec: PodSpec): JsonObject | undefined {
  const next = withFields(spec.affinity ?? {}, { nodeAffinity: old.affinity?.nodeAffinity });
  return Object.keys(next).length === 0 ? old.affinity && {} : (next as JsonObject);
}

function withImages(old: readonly Container[], next: readonly Container[]): readonly Container[] {
  return next.map((container, index) => withFields(container, { image: old[index]?.image }));
}

const field = 'spec.ephemeralContainers';

/** Ephemeral containers may only be added. */
export function ephemeralCauses(before: StoredObject, after: StoredObject): readonly FieldCause[] {
  const next = new Map((typed(after).spec.ephemeralContainers ?? []).map((one) => [one.name, one]));
  return (typed(before).spec.ephemeralContainers ?? []).flatMap((old) => {
    const now = next.get(old.name);
    const what = `existing ephemeral containers "${old.name}"`;
    if (now === undefined) return [forbiddenField(field, `${what} may not be removed\n`)];
    if (sameValue(old, now)) return [];
    const paths = changedPaths(old, now, `${field}[${old.name}]`).join(', ');
    return [forbiddenField(field, `${what} may not be changed\nchanged: ${paths}`)];
  });
}

/** Mirror pods are read-only. */
export function mirrorCauses(before: StoredObject, why: string): readonly FieldCause[] | undefined {
  return isMirror(before) ? [forbiddenField('[]', why)] : undefined;
}

/**
 * An update of the ephemeralcontainers subresource takes only the list of ephemeral containers from
 * the request.
 */
export function ephemeralContainersUpdate(before: StoredObject, desired: JsonObject): StoredObject {
  const list = (desired['spec'] as JsonObject | undefined)?.['ephemeralContainers'];
  const { ephemeralContainers: _, ...rest } = before.spec ?? {};
  return { ...before, spec: list === undefined ? rest : { ...rest, ephemeralContainers: list } };
}

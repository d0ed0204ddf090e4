import { apiResources, sameValue } from '../../../api/index.ts';
import type { PodSpec, RuntimeClass, Toleration } from '../../../kinds/index.ts';
import type { StoredObject, WriteContext } from '../../api/index.ts';
import { podForbidden, typed, withFields, withSpec } from '../pod-object.ts';

/** Applies the overhead and the scheduling constraints of the RuntimeClass. */
export function admitRuntimeClass(pod: StoredObject, { objects }: WriteContext): StoredObject {
  const { spec } = typed(pod);
  if (spec.runtimeClassName === undefined) return pod;
  const found = objects.get(apiResources.runtimeClasses, undefined, spec.runtimeClassName);
  if (found === undefined)
    throw podForbidden(pod, `pod rejected: RuntimeClass "${spec.runtimeClassName}" not found`);
  const { overhead, scheduling } = found as unknown as RuntimeClass;
  const nodeSelector = { ...spec.nodeSelector, ...selectorOf(pod, spec, scheduling?.nodeSelector ?? {}) };
  const own = spec.tolerations ?? [];
  const tolerations = scheduling === undefined ? own : merged(own, scheduling.tolerations ?? []);
  return withSpec(
    pod,
    withFields(spec, {
      overhead: overheadOf(pod, spec, overhead?.podFixed),
      nodeSelector: Object.keys(nodeSelector).length === 0 ? undefined : nodeSelector,
      tolerations: tolerations.length === 0 ? undefined : tolerations,
    }),
  );
}

/** The last check of a new pod: only its RuntimeClass may set the overhead. */
export function checkOverheadOwner(pod: StoredObject, { objects }: WriteContext): void {
  const { runtimeClassName, overhead } = typed(pod).spec;
  if (overhead === undefined) return;
  const found = runtimeClassName && objects.get(apiResources.runtimeClasses, undefined, runtimeClassName);
  if (!found || (found as unknown as RuntimeClass).overhead === undefined)
    throw podForbidden(
      pod,
      'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead',
    );
}

type Amounts = Readonly<Record<string, string>>;

function overheadOf(pod: StoredObject, { overhead = {} }: PodSpec, fixed: Amounts | undefined): unknown {
  const isGiven = Object.keys(overhead).length > 0;
  if (fixed === undefined) return isGiven ? overhead : undefined;
  if (isGiven && !sameValue(overhead, fixed))
    throw podForbidden(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
  return fixed;
}

function selectorOf(pod: StoredObject, { nodeSelector = {} }: PodSpec, overhead: Amounts): Amounts {
  for (const [key, value] of Object.entries(overhead)) {
    const own = nodeSelector[key];
    if (own !== undefined && own !== value)
      throw podForbidden(
        pod,
        `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${value}; pod.spec.nodeSelector[${key}] = ${own}`,
      );
  }
  return overhead;
}

/** Merges tolerations; of two redundant ones the first is kept. */
function merged(own: readonly Toleration[], more: readonly Toleration[]): readonly Toleration[] {
  const all = [...own, ...more];
  return all.filter((one, index) =>
    all.every((other, position) => {
      if (position === index || !subsumes(other, one)) return true;
      return position > index && subsumes(one, other);
    }),
  );
}

/** Whether the first toleration covers the second. */
function subsumes(wide: Toleration, narrow: Toleration): boolean {
  if (sameValue(wide, narrow)) return true;
  const { key = '', operator = '', value = '', effect = '' } = wide;
  if (key !== (narrow.key ?? '') && !(key === '' && operator === 'Exists')) return false;
  if (effect !== '' && effect !== (narrow.effect ?? '')) return false;
  const isShort =
    effect === 'NoExecute' &&
    wide.tolerationSeconds !== undefined &&
    (narrow.tolerationSeconds ?? Number.POSITIVE_INFINITY) > wide.tolerationSeconds;
  if (isShort) return false;
  if (operator === 'Exists') return true;
  return narrow.operator === 'Equal' && value === (narrow.value ?? '');
}

import type { PriorityClass } from '../../../kinds/index.ts';
import { type StoredObject, serverResources, type WriteContext } from '../../api/index.ts';
import { podForbidden, typed, withFields, withSpec } from '../pod-object.ts';

/** The resolved priority of a pod. */
interface Priority {
  readonly name: string | undefined;
  readonly value: number;
  readonly policy: string;
}

const defaultPolicy = 'PreemptLowerPriority';

/**
 * The built-in PriorityClasses: pods may use them even before the bootstrap controller has created
 * the objects.
 */
const builtIn: Readonly<Record<string, number>> = {
  'system-cluster-critical': 2_000_000_000,
  'system-node-critical': 2_000_001_000,
};

/** An update keeps the priority that was resolved at the creation of the pod. */
export function admitPriority(pod: StoredObject, write: WriteContext): StoredObject {
  const { spec } = typed(pod);
  if (write.before !== undefined) {
    const old = typed(write.before).spec;
    const priority = spec.priority ?? old.priority;
    const preemptionPolicy = spec.preemptionPolicy ?? old.preemptionPolicy;
    return withSpec(pod, withFields(spec, { priority, preemptionPolicy }));
  }
  const { name, value, policy } = priorityOf(pod, spec.priorityClassName ?? '', write);
  const computed = 'priority admission controller computed';
  const class_ = 'from the given PriorityClass name';
  if (spec.priority !== undefined && spec.priority !== value)
    throw podForbidden(
      pod,
      `the integer value of priority (${spec.priority}) must not be provided in pod spec; ${computed} ${value} ${class_}`,
    );
  if (spec.preemptionPolicy !== undefined && spec.preemptionPolicy !== policy)
    throw podForbidden(
      pod,
      `the string value of PreemptionPolicy (${spec.preemptionPolicy}) must not be provided in pod spec; ${computed} ${policy} ${class_}`,
    );
  return withSpec(
    pod,
    withFields(spec, { priorityClassName: name, priority: value, preemptionPolicy: policy }),
  );
}

function priorityOf(pod: StoredObject, name: string, write: WriteContext): Priority {
  if (name === '') return globalDefault(write);
  const found = write.objects.get(serverResources.priorityClasses, undefined, name);
  const value = builtIn[name];
  if (found !== undefined) return ofClass(found);
  if (value !== undefined) return { name, value, policy: defaultPolicy };
  throw podForbidden(pod, `no PriorityClass with name ${name} was found`);
}

/** If several PriorityClasses are the global default, the one with the lowest value applies. */
function globalDefault({ objects }: WriteContext): Priority {
  const [first] = objects
    .all(serverResources.priorityClasses)
    .filter((one) => one['globalDefault'] === true)
    .map(ofClass)
    .toSorted((a, b) => a.value - b.value);
  return first ?? { name: undefined, value: 0, policy: defaultPolicy };
}

function ofClass(object: StoredObject): Priority {
  const { value, preemptionPolicy } = object as unknown as PriorityClass;
  return { name: object.metadata.name, value, policy: preemptionPolicy || defaultPolicy };
}

import type { Toleration } from '../../../kinds/index.ts';
import type { StoredObject } from '../../core/index.ts';
import { typed, withSpec } from '../pod-object.ts';

const patienceSeconds = 300;

/** A pod stays for a while on a node that is not well, unless it says otherwise. */
export function admitTolerations(pod: StoredObject): StoredObject {
  const { spec } = typed(pod);
  const given = spec.tolerations ?? [];
  const added = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']
    .filter((key) => !given.some((one) => isAbout(one, key)))
    .map((key) => ({
      key,
      operator: 'Exists',
      effect: 'NoExecute',
      tolerationSeconds: patienceSeconds,
    }));
  return added.length === 0 ? pod : withSpec(pod, { ...spec, tolerations: [...given, ...added] });
}

function isAbout({ key, effect }: Toleration, wanted: string): boolean {
  return (!key || key === wanted) && (!effect || effect === 'NoExecute');
}

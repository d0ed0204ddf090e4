import { sameValue } from '../../api/index.ts';
import type { PodRules } from '../../pods/index.ts';
import { validatePod, validateStoredPod } from '../../pods/validation/index.ts';
import type { FieldCause, KindRules, StoredObject, WriteContext } from '../api/index.ts';
import { causesOf } from '../validation/causes.ts';
import {
  admittedPod,
  checkCapacity,
  checkOverheadOwner,
  checkResourceClaims,
} from './admission/pod-admission.ts';
import { typed } from './pod-object.ts';
import { podStatusComplaints } from './pod-status.ts';
import { counted, preparedPod } from './prepare.ts';
import { resizeCauses, resizePart } from './resize.ts';
import { enabledHere, SpecDecoder } from './spec-decoder.ts';
import { bindingPart, bindPod, evictPod } from './subresource-handlers.ts';
import {
  annotationCauses,
  ephemeralCauses,
  ephemeralPart,
  mirrorCauses,
  updateCauses,
} from './update-rules.ts';
import { warnAbout } from './warnings.ts';

/** Everything a pod is, may be and may become in this API. */
export const podRules: KindRules = makePodRules(new SpecDecoder());

function makePodRules(decoder: SpecDecoder): KindRules {
  return {
    status: 'apart',
    generation: 'counted',
    prepare: (pod, write) => preparedPod(decoder, pod, write),
    admit: (pod, write) => (write.verb === 'delete' ? pod : counted(admittedPod(pod, write), write)),
    validate: (pod, write) => judged(decoder, pod, write),
    parts: {
      ephemeralcontainers: ephemeralPart,
      resize: resizePart,
      binding: bindingPart,
    },
    act: { binding: bindPod, eviction: evictPod },
  };
}

function judged(decoder: SpecDecoder, pod: StoredObject, write: WriteContext) {
  const causes = podCauses(decoder, pod, write);
  if (causes.length === 0 && write.verb === 'create') warnAbout(pod, write.warn);
  return causes;
}

const rules: PodRules = { enabled: enabledHere, apiReferences: 'allowed' };

/** All that is wrong with a pod that is to be stored. */
export function podCauses(
  decoder: SpecDecoder,
  pod: StoredObject,
  write: WriteContext,
): readonly FieldCause[] {
  const { before, subresource } = write;
  if (write.verb === 'delete' || subresource === 'binding') return [];
  if (before === undefined) return newCauses(decoder, pod, write);
  if (subresource === 'status')
    return [...annotationCauses(before, pod), ...podStatusComplaints(before, pod)];
  const own =
    sameValue(before.spec, pod.spec) && sameValue(before.metadata, pod.metadata)
      ? []
      : soundness(decoder, pod);
  if (subresource === 'ephemeralcontainers')
    return (
      mirrorCauses(before, 'static pods do not support ephemeral containers') ?? [
        ...own,
        ...annotationCauses(before, pod),
        ...ephemeralCauses(before, pod),
      ]
    );
  if (subresource === 'resize')
    return (
      mirrorCauses(before, 'static pods cannot be resized') ??
      fitting([...own, ...resizeCauses(before, pod)], pod, write)
    );
  return [...own, ...updateCauses(before, pod)];
}

/** Whether there is room is asked last. */
function fitting(
  causes: readonly FieldCause[],
  pod: StoredObject,
  write: WriteContext,
): readonly FieldCause[] {
  if (causes.length === 0) checkCapacity(pod, write);
  return causes;
}

function newCauses(decoder: SpecDecoder, pod: StoredObject, write: WriteContext): readonly FieldCause[] {
  const causes = causesOf(validatePod(typed(pod), rules, decoder.table));
  if (causes.length > 0) return causes;
  checkOverheadOwner(pod, write);
  checkResourceClaims(pod);
  return [];
}

function soundness(decoder: SpecDecoder, pod: StoredObject): readonly FieldCause[] {
  return causesOf(validateStoredPod(typed(pod), rules, decoder.table));
}

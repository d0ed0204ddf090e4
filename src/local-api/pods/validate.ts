import { sameValue } from '../../api/index.ts';
import type { PodRules } from '../../pods/index.ts';
import { validatePod, validateStoredPod } from '../../pods/validation/index.ts';
import { type FieldCause, podStatusComplaints, type StoredObject, type WriteContext } from '../core/index.ts';
import { checkCapacity, checkOverheadOwner, checkResourceClaims } from './admission/index.ts';
import { causesOf } from './causes.ts';
import { ephemeralCauses, mirrorCauses } from './ephemeral-containers.ts';
import { typed } from './pod-object.ts';
import { resizeCauses } from './resize.ts';
import { enabledHere, type SpecDecoder } from './spec-decoder.ts';
import { annotationCauses, updateCauses } from './update-rules.ts';

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

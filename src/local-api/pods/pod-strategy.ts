import { sameValue } from '../../api/index.ts';
import type { PodRules } from '../../pods/index.ts';
import { validatePod, validateStoredPod } from '../../pods/validation/index.ts';
import type { FieldCause, ResourceStrategy, StoredObject, WriteContext } from '../api/index.ts';
import { causesOf } from '../validation/causes.ts';
import {
  admitPod,
  checkCapacity,
  checkOverheadOwner,
  checkResourceClaims,
} from './admission/pod-admission.ts';
import { typed } from './pod-object.ts';
import { podStatusCauses } from './pod-status.ts';
import { preparePod, withUpdatedGeneration } from './prepare.ts';
import { resizeCauses, resizeUpdate } from './resize.ts';
import { isFeatureEnabled, SpecDecoder } from './spec-decoder.ts';
import { bindingUpdate, bindPod, evictPod } from './subresource-handlers.ts';
import {
  annotationCauses,
  ephemeralCauses,
  ephemeralContainersUpdate,
  mirrorCauses,
  updateCauses,
} from './update-rules.ts';
import { warnAboutPod } from './warnings.ts';

/** The registry strategy of pods: defaults, admission and validation. */
export const podStrategy: ResourceStrategy = createPodStrategy(new SpecDecoder());

function createPodStrategy(decoder: SpecDecoder): ResourceStrategy {
  return {
    status: 'separate',
    generation: 'counted',
    prepare: (pod, write) => preparePod(decoder, pod, write),
    admit: (pod, write) =>
      write.verb === 'delete' ? pod : withUpdatedGeneration(admitPod(pod, write), write),
    validate: (pod, write) => validateAndWarn(decoder, pod, write),
    subresourceUpdates: {
      ephemeralcontainers: ephemeralContainersUpdate,
      resize: resizeUpdate,
      binding: bindingUpdate,
    },
    handlers: { binding: bindPod, eviction: evictPod },
  };
}

function validateAndWarn(decoder: SpecDecoder, pod: StoredObject, write: WriteContext) {
  const causes = podCauses(decoder, pod, write);
  if (causes.length === 0 && write.verb === 'create') warnAboutPod(pod, write.warn);
  return causes;
}

const rules: PodRules = { enabled: isFeatureEnabled, apiReferences: 'allowed' };

/** Validates a pod before it is stored. */
export function podCauses(
  decoder: SpecDecoder,
  pod: StoredObject,
  write: WriteContext,
): readonly FieldCause[] {
  const { before, subresource } = write;
  if (write.verb === 'delete' || subresource === 'binding') return [];
  if (before === undefined) return newCauses(decoder, pod, write);
  if (subresource === 'status') return [...annotationCauses(before, pod), ...podStatusCauses(before, pod)];
  const own =
    sameValue(before.spec, pod.spec) && sameValue(before.metadata, pod.metadata)
      ? []
      : storedPodCauses(decoder, pod);
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
      withCapacityCheck([...own, ...resizeCauses(before, pod)], pod, write)
    );
  return [...own, ...updateCauses(before, pod)];
}

/**
 * Checks the resources of a valid pod against the capacity of its node. Throws a StatusError if
 * they exceed it.
 */
function withCapacityCheck(
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

function storedPodCauses(decoder: SpecDecoder, pod: StoredObject): readonly FieldCause[] {
  return causesOf(validateStoredPod(typed(pod), rules, decoder.table));
}

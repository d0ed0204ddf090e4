import type { KindRules, StoredObject, WriteContext } from '../core/index.ts';
import { admittedPod } from './admission/index.ts';
import { bindingPart, bindPod } from './binding.ts';
import { ephemeralPart } from './ephemeral-containers.ts';
import { evictPod } from './eviction.ts';
import { counted, preparedPod } from './prepare.ts';
import { resizePart } from './resize.ts';
import { SpecDecoder } from './spec-decoder.ts';
import { podCauses } from './validate.ts';
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

import { type JsonObject, sameValue } from '../../../src/api/index.ts';
import type {
  FieldCause,
  ResourceStrategy,
  StoredObject,
  WriteContext,
} from '../../../src/local-api/index.ts';
import { podStatusCauses, withPreservedStatus } from '../../../src/local-api/index.ts';
import { computeQosClass, type Pod } from '../../../src/pods/index.ts';

/** The part of the API server's validation and defaulting that affects a kubelet. */
export const plainRules: Readonly<Record<string, ResourceStrategy>> = {
  pods: { prepare: preparedPod, validate: podCauses },
  configmaps: { validate: sealedCauses },
  secrets: { validate: sealedCauses },
  persistentvolumes: { prepare: begun(() => ({ phase: 'Pending' })) },
  persistentvolumeclaims: { prepare: begun(() => ({ phase: 'Pending' })) },
  volumeattachments: { prepare: begun(() => ({ attached: false })), unconditionalUpdate: 'allowed' },
  certificatesigningrequests: { prepare: preparedSigningRequest },
  csidrivers: { unconditionalUpdate: 'allowed' },
  runtimeclasses: { unconditionalUpdate: 'allowed', createOnUpdate: 'refused' },
  events: { validate: eventCauses },
};

function begun(status: () => JsonObject): NonNullable<ResourceStrategy['prepare']> {
  return (object, { before }) => (before === undefined ? { ...object, status: status() } : object);
}

function preparedPod(object: StoredObject, { before, subresource }: WriteContext): StoredObject {
  if (before !== undefined) return subresource === 'status' ? withPreservedStatus(before, object) : object;
  const spec: JsonObject = {
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 30,
    dnsPolicy: 'ClusterFirst',
    enableServiceLinks: true,
    containers: [],
    ...object.spec,
  };
  const pod = { ...object, spec, status: { phase: 'Pending' } };
  return { ...pod, status: { ...pod.status, qosClass: computeQosClass(pod as unknown as Pod) } };
}

function podCauses(object: StoredObject, { before, subresource }: WriteContext): readonly FieldCause[] {
  if (before === undefined || subresource !== 'status') return [];
  return [...podStatusCauses(before, object), ...firstAddress(object.status ?? {})];
}

/**
 * Rejects a pod status in which podIP is not the first of podIPs, because this is a bug of the
 * kubelet.
 */
function firstAddress({ podIP, podIPs }: JsonObject): readonly FieldCause[] {
  const [first] = (podIPs ?? []) as readonly { readonly ip?: string }[];
  if (first === undefined || first.ip === podIP) return [];
  const message = `Invalid value: ${JSON.stringify(first.ip)}: must be equal to \`podIP\``;
  return [{ reason: 'FieldValueInvalid', field: 'status.podIPs[0].ip', message }];
}

/**
 * Sets the requesting user, which the signer uses for its decision; the client must not be able to
 * set it.
 */
function preparedSigningRequest(object: StoredObject, { before, user }: WriteContext): StoredObject {
  if (before !== undefined) return object;
  return { ...object, spec: { ...object.spec, username: user.name, groups: user.groups }, status: {} };
}

/** Rejects changes of an immutable Secret or ConfigMap. */
function sealedCauses(object: StoredObject, { before }: WriteContext): readonly FieldCause[] {
  if (before?.['immutable'] !== true) return [];
  return ['immutable', 'data', 'binaryData', 'stringData']
    .filter((field) => !sameValue(before[field], object[field]))
    .map((field) => ({
      reason: 'FieldValueForbidden',
      field,
      message: 'Forbidden: field is immutable when `immutable` is set',
    }));
}

function eventCauses(object: StoredObject, { before }: WriteContext): readonly FieldCause[] {
  if (before !== undefined) return [];
  const involved = (object['involvedObject'] ?? {}) as JsonObject;
  const homes: readonly unknown[] =
    involved['namespace'] === undefined ? ['default', 'kube-system'] : [involved['namespace']];
  if (homes.includes(object.metadata.namespace)) return [];
  const given = JSON.stringify(involved['namespace'] ?? '');
  return [
    {
      reason: 'FieldValueInvalid',
      field: 'involvedObject.namespace',
      message: `Invalid value: ${given}: does not match event.namespace`,
    },
  ];
}

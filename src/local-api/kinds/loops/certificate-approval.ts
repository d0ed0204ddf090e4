import type { Node } from '../../../kinds/index.ts';
import { canonicalIp } from '../../../protocols/x509/index.ts';
import { nodeOf, type ObjectReader, type StoredObject } from '../../core/index.ts';
import type { SigningFacts } from '../desks.ts';
import { nodes } from '../resources.ts';
import { asRequest } from '../signing-requests.ts';

export const signers = {
  client: 'kubernetes.io/kube-apiserver-client',
  kubelet: 'kubernetes.io/kube-apiserver-client-kubelet',
  serving: 'kubernetes.io/kubelet-serving',
} as const;

const kubeletUses = {
  client: ['client auth', 'digital signature', 'key encipherment'],
  serving: ['digital signature', 'key encipherment', 'server auth'],
} as const;

/** Why a signer will not sign; undefined if it will, or if it is none of ours. */
export function signerComplaint(object: StoredObject, facts: SigningFacts): string | undefined {
  const { signerName = '', usages = [] } = asRequest(object).spec ?? {};
  if (signerName === signers.client) return clientComplaint(usages);
  if (signerName === signers.kubelet) return kubeletComplaint(facts, usages, 'client');
  return signerName === signers.serving ? kubeletComplaint(facts, usages, 'serving') : undefined;
}

function clientComplaint(usages: readonly string[]): string | undefined {
  const strange = usages.find((usage) => !(kubeletUses.client as readonly string[]).includes(usage));
  if (strange !== undefined) return `invalid usage for client certificate: ${strange}`;
  return usages.includes('client auth')
    ? undefined
    : 'missing required usage for client certificate: client auth';
}

function kubeletComplaint(
  facts: SigningFacts,
  usages: readonly string[],
  kind: 'client' | 'serving',
): string | undefined {
  const { organizations, commonName } = facts;
  if (organizations.length !== 1 || organizations[0] !== 'system:nodes')
    return 'subject organization is not system:nodes';
  const names = kind === 'client' ? extraNames(facts) : servingNames(facts);
  if (names !== undefined) return names;
  if (!hasUses(usages, kubeletUses[kind])) return `usages did not match [${kubeletUses[kind].join(' ')}]`;
  return commonName.startsWith('system:node:')
    ? undefined
    : 'subject common name does not begin with system:node:';
}

function extraNames({ dnsNames, emailAddresses, ipAddresses, uris }: SigningFacts): string | undefined {
  const found = (
    [
      ['DNS', dnsNames],
      ['Email', emailAddresses],
      ['IP', ipAddresses],
      ['URI', uris],
    ] as const
  ).find(([, names]) => names.length > 0);
  return found && `${found[0]} subjectAltNames are not allowed`;
}

function servingNames({ dnsNames, ipAddresses, emailAddresses, uris }: SigningFacts): string | undefined {
  if (dnsNames.length === 0 && ipAddresses.length === 0) return 'DNS or IP subjectAltName is required';
  return extraNames({ ...emptyFacts, emailAddresses, uris });
}

const emptyFacts: SigningFacts = {
  commonName: '',
  organizations: [],
  dnsNames: [],
  ipAddresses: [],
  emailAddresses: [],
  uris: [],
};

/** All of these, where encipherment by the key may be missing, as with keys that cannot do it. */
function hasUses(usages: readonly string[], wanted: readonly string[]): boolean {
  const needed = wanted.filter((usage) => usage !== 'key encipherment');
  return needed.every((usage) => usages.includes(usage)) && usages.every((usage) => wanted.includes(usage));
}

export type Approval = { readonly by: 'rule'; readonly message: string } | { readonly by: 'nobody' };

const nobody: Approval = { by: 'nobody' };

/** What is granted without asking anybody: a node's own certificates, to the node itself. */
export function approvalOf(
  object: StoredObject,
  facts: SigningFacts,
  objects: ObjectReader,
  localNode: string,
): Approval {
  if (signerComplaint(object, facts) !== undefined) return nobody;
  const { signerName, username = '', groups = [] } = asRequest(object).spec ?? {};
  const node = nodeOf({ name: username, groups });
  if (node === undefined || username !== facts.commonName) return nobody;
  if (signerName === signers.kubelet)
    return { by: 'rule', message: 'The node asks for a certificate of its own.' };
  const isOwn = signerName === signers.serving && node === localNode && hasAddresses(objects, node, facts);
  return isOwn ? { by: 'rule', message: 'The node asks for a certificate for its own addresses.' } : nobody;
}

function hasAddresses(objects: ObjectReader, name: string, facts: SigningFacts): boolean {
  const node = objects.get(nodes, undefined, name) as unknown as Node | undefined;
  const own = (node?.status?.addresses ?? []).map(({ address }) => canonicalIp(address) ?? address);
  return [...facts.dnsNames, ...facts.ipAddresses].every((one) => own.includes(canonicalIp(one) ?? one));
}

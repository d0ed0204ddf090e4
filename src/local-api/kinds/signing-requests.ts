import { sameValue } from '../../api/index.ts';
import type { CertificateSigningRequest, CertificateSigningRequestCondition } from '../../kinds/index.ts';
import { apiTime } from '../../lib/index.ts';
import { dnsSubdomain, type TextRule } from '../../pods/validation/index.ts';
import type { CertificateSigner } from '../api/auth-types.ts';
import type { FieldCause, ResourceStrategy, StoredObject, WriteContext } from '../api/index.ts';
import { forbidden } from '../api/index.ts';
import { duplicate, forbiddenField, invalid, notSupported, oneOf, required } from '../validation/causes.ts';
import { validatorFor, withFields } from '../validation/metadata.ts';
import { certificateSigningRequests } from './resources.ts';

type Condition = CertificateSigningRequestCondition;

const usages = [
  'signing',
  'digital signature',
  'content commitment',
  'key encipherment',
  'key agreement',
  'data encipherment',
  'cert sign',
  'crl sign',
  'encipher only',
  'decipher only',
  'any',
  'server auth',
  'client auth',
  'code signing',
  'email protection',
  's/mime',
  'ipsec end system',
  'ipsec tunnel',
  'ipsec user',
  'timestamping',
  'ocsp signing',
  'microsoft sgc',
  'netscape sgc',
];

/** The name of a certificate signing request may be any path segment. */
const pathSegment: TextRule = (text) => {
  if (text === '.' || text === '..') return [`may not be '${text}'`];
  return ['/', '%'].filter((sign) => text.includes(sign)).map((sign) => `may not contain '${sign}'`);
};

/** The condition types that only the approval subresource may write. */
const decisionTypes = ['Approved', 'Denied'];
const shortestSeconds = 600;

export function signingRequestStrategy(signer: CertificateSigner): ResourceStrategy {
  return {
    status: 'separate',
    prepare: prepared,
    admit: (object, write) => admitted(object, write, signer),
    validate: validatorFor(pathSegment, (object, write) => [
      ...(write.before === undefined ? requestCauses(object, signer) : []),
      ...conditionCauses(conditionsOf(object)),
      ...updateCauses(object, write),
    ]),
  };
}

export function asRequest(object: StoredObject): CertificateSigningRequest {
  return object as unknown as CertificateSigningRequest;
}

export function conditionsOf(object: StoredObject): readonly Condition[] {
  return asRequest(object).status?.conditions ?? [];
}

/** The PEM text of the certificate signing request. */
export function requestText(object: StoredObject): string {
  return Buffer.from(asRequest(object).spec?.request ?? '', 'base64').toString();
}

function prepared(object: StoredObject, write: WriteContext): StoredObject {
  const { before, subresource, user } = write;
  if (before === undefined) {
    const { username: _, uid: __, groups: ___, extra: ____, ...content } = object.spec ?? {};
    const requester = {
      username: user.name,
      groups: user.groups,
      ...(user.uid === undefined ? {} : { uid: user.uid }),
      ...(user.extra === undefined ? {} : { extra: user.extra }),
    };
    return { ...object, spec: { ...content, ...requester }, status: {} };
  }
  if (subresource === undefined) return withFields(object, { spec: before.spec, status: before.status });
  const conditions = conditionsOf(object);
  const completed =
    subresource === 'status' ? withPreservedDecisions(conditions, conditionsOf(before)) : conditions;
  const now = apiTime(write.clock.now());
  const stamped = completed.map((condition) => withTimes(condition, conditionsOf(before), now));
  return { ...object, status: { ...object.status, ...(stamped.length > 0 ? { conditions: stamped } : {}) } };
}

/** Keeps the approval conditions: a status update cannot change a decision. */
function withPreservedDecisions(
  conditions: readonly Condition[],
  before: readonly Condition[],
): readonly Condition[] {
  return conditions.map((condition) =>
    decisionTypes.includes(condition.type)
      ? (before.find(({ type }) => type === condition.type) ?? condition)
      : condition,
  );
}

function withTimes(condition: Condition, before: readonly Condition[], now: string): Condition {
  const previous = before.find(({ type, status }) => type === condition.type && status === condition.status);
  return {
    ...condition,
    lastUpdateTime: condition.lastUpdateTime ?? now,
    lastTransitionTime: condition.lastTransitionTime ?? previous?.lastTransitionTime ?? now,
  };
}

/** Rejects requests of system:masters certificates, which would be a privilege escalation. */
function admitted(object: StoredObject, write: WriteContext, signer: CertificateSigner): StoredObject {
  if (write.verb !== 'create') return object;
  const isClient = asRequest(object).spec?.signerName === 'kubernetes.io/kube-apiserver-client';
  const organizations = isClient ? (signer.read(requestText(object))?.organizations ?? []) : [];
  if (organizations.includes('system:masters'))
    throw forbidden(
      { resource: certificateSigningRequests, name: object.metadata.name },
      'use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed',
    );
  return object;
}

function requestCauses(object: StoredObject, signer: CertificateSigner): readonly FieldCause[] {
  const {
    request = '',
    usages: requested = [],
    signerName = '',
    expirationSeconds: seconds,
  } = asRequest(object).spec ?? {};
  const isReadable = signer.read(requestText(object)) !== undefined;
  return [
    ...(isReadable ? [] : [invalid('spec.request', request, 'PEM block type must be CERTIFICATE REQUEST')]),
    ...(requested.length === 0 ? [required('spec.usages')] : []),
    ...requested.flatMap((usage, index) => [
      ...(usages.includes(usage) ? [] : [notSupported(`spec.usages[${index}]`, usage, usages.toSorted())]),
      ...(requested.indexOf(usage) < index ? [duplicate(`spec.usages[${index}]`, usage)] : []),
    ]),
    ...signerCauses(signerName),
    ...(seconds !== undefined && seconds < shortestSeconds
      ? [
          invalid(
            'spec.expirationSeconds',
            seconds,
            'may not specify a duration less than 600 seconds (10 minutes)',
          ),
        ]
      : []),
  ];
}

function signerCauses(name: string): readonly FieldCause[] {
  const field = 'spec.signerName';
  if (name === '') return [required(field)];
  if (name === 'kubernetes.io/legacy-unknown')
    return [invalid(field, name, 'the legacy signerName is not allowed via this API version')];
  const [domain = '', path = '', ...more] = name.split('/');
  if (path === '' || more.length > 0)
    return [
      invalid(field, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'"),
    ];
  const isQualified = domain.includes('.');
  return [
    ...dnsSubdomain(domain).map((message) => invalid(field, domain, message)),
    ...(isQualified
      ? []
      : [invalid(field, domain, 'should be a domain with at least two segments separated by dots')]),
    ...dnsSubdomain(path).map((message) => invalid(field, path, message)),
  ];
}

function conditionCauses(conditions: readonly Condition[]): readonly FieldCause[] {
  const field = 'status.conditions';
  const found = conditions.map(({ type }) => type);
  const both = decisionTypes.every((decision) => found.includes(decision));
  const last = found.findLast((type) => decisionTypes.includes(type));
  return [
    ...conditions.flatMap(({ type, status }, index) => [
      ...(type === '' ? [required(`${field}[${index}].type`)] : []),
      ...oneOf(
        `${field}[${index}].status`,
        status,
        [...decisionTypes, 'Failed'].includes(type) ? ['True'] : ['False', 'True', 'Unknown'],
        'refused',
      ),
      ...(found.indexOf(type) < index ? [duplicate(`${field}[${index}].type`, type)] : []),
    ]),
    ...(both ? [invalid(field, last, 'Approved and Denied conditions are mutually exclusive')] : []),
  ];
}

function updateCauses(object: StoredObject, { before, subresource }: WriteContext): readonly FieldCause[] {
  if (before === undefined || subresource === undefined) return [];
  return [
    ...contentCauses(object),
    ...[...decisionTypes, 'Failed'].flatMap((type) => removalCauses(type, before, object)),
    ...(subresource === 'approval'
      ? []
      : decisionTypes.flatMap((type) => decisionCauses(type, before, object))),
    ...certificateCauses(before, object, subresource),
  ];
}

function ofType(object: StoredObject, wanted: string): readonly Condition[] {
  return conditionsOf(object).filter(({ type }) => type === wanted);
}

function removalCauses(type: string, before: StoredObject, object: StoredObject): readonly FieldCause[] {
  if (ofType(object, type).length >= ofType(before, type).length) return [];
  return [forbiddenField('status.conditions', `updates may not remove a condition of type "${type}"`)];
}

function decisionCauses(type: string, before: StoredObject, object: StoredObject): readonly FieldCause[] {
  const [was, is] = [ofType(before, type), ofType(object, type)];
  if (is.length < was.length || sameValue(was, is)) return [];
  const how = is.length > was.length ? 'add' : 'modify';
  return [forbiddenField('status.conditions', `updates may not ${how} a condition of type "${type}"`)];
}

function certificateCauses(before: StoredObject, object: StoredObject, part: string): readonly FieldCause[] {
  const field = 'status.certificate';
  const [was = '', is = ''] = [before, object].map((one) => asRequest(one).status?.certificate ?? '');
  if (was === is) return [];
  if (part !== 'status') return [forbiddenField(field, 'updates may not set certificate content')];
  return was === '' ? [] : [forbiddenField(field, 'updates may not modify existing certificate content')];
}

function contentCauses(object: StoredObject): readonly FieldCause[] {
  const text = Buffer.from(asRequest(object).status?.certificate ?? '', 'base64').toString();
  if (text === '' || text.includes('-----BEGIN CERTIFICATE-----')) return [];
  return [
    invalid('status.certificate', '<certificate data>', 'must contain at least one CERTIFICATE PEM block'),
  ];
}

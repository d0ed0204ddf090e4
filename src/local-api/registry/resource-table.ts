import { type ApiResource, apiResources } from '../../api/index.ts';
import type { KindRules, ResourceEntry, ResourceVerb, SubresourceEntry } from '../api/api-types.ts';

/** What is plain of a kind without looking at its fields. */
type Traits = Pick<KindRules, 'status' | 'generation' | 'updateWithoutVersion' | 'createByUpdate'>;

export interface TableRow extends Omit<ResourceEntry, 'rules'> {
  readonly traits: Traits;
}

const everyVerb: readonly ResourceVerb[] = [
  'create',
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'update',
  'watch',
];

function row(resource: ApiResource, given: Partial<Omit<TableRow, 'resource'>> = {}): TableRow {
  return {
    resource,
    singular: resource.kind.toLowerCase(),
    shortNames: [],
    categories: [],
    verbs: everyVerb,
    subresources: [],
    fieldSelectors: [],
    deleteAnswers: 'status',
    kept: 'stored',
    traits: {},
    ...given,
  };
}

const changing: readonly ResourceVerb[] = ['get', 'patch', 'update'];
const status: SubresourceEntry = { name: 'status', verbs: changing };
const connecting: readonly ResourceVerb[] = ['create', 'get'];
const proxying: readonly ResourceVerb[] = ['create', 'delete', 'get', 'patch', 'update'];
const apart: Traits = { status: 'apart' };

function core(plural: string, kind: string, scope: ApiResource['scope'] = 'namespace'): ApiResource {
  return { group: '', version: 'v1', plural, kind, scope };
}

function grouped(
  group: string,
  plural: string,
  kind: string,
  scope: ApiResource['scope'] = 'cluster',
): ApiResource {
  return { group, version: 'v1', plural, kind, scope };
}

/** Resources a kubelet has no business with. */
export const localResources = {
  namespaces: core('namespaces', 'Namespace', 'cluster'),
  bindings: core('bindings', 'Binding'),
  endpoints: core('endpoints', 'Endpoints'),
  resourceQuotas: core('resourcequotas', 'ResourceQuota'),
  limitRanges: core('limitranges', 'LimitRange'),
  newerEvents: grouped('events.k8s.io', 'events', 'Event', 'namespace'),
  storageClasses: grouped('storage.k8s.io', 'storageclasses', 'StorageClass'),
  priorityClasses: grouped('scheduling.k8s.io', 'priorityclasses', 'PriorityClass'),
  podDisruptionBudgets: grouped('policy', 'poddisruptionbudgets', 'PodDisruptionBudget', 'namespace'),
  selfSubjectReviews: grouped('authentication.k8s.io', 'selfsubjectreviews', 'SelfSubjectReview'),
  selfSubjectAccessReviews: grouped(
    'authorization.k8s.io',
    'selfsubjectaccessreviews',
    'SelfSubjectAccessReview',
  ),
  selfSubjectRulesReviews: grouped(
    'authorization.k8s.io',
    'selfsubjectrulesreviews',
    'SelfSubjectRulesReview',
  ),
  localSubjectAccessReviews: grouped(
    'authorization.k8s.io',
    'localsubjectaccessreviews',
    'LocalSubjectAccessReview',
    'namespace',
  ),
} as const satisfies Record<string, ApiResource>;

/** Made anew for each catalogue; the core group first. */
export function resourceTable(): readonly TableRow[] {
  return [...coreRows(), ...otherRows(), ...storageRows(), ...answeredRows()];
}

function coreRows(): readonly TableRow[] {
  return [
    podRow(),
    row(apiResources.nodes, {
      shortNames: ['no'],
      subresources: [{ name: 'proxy', kind: 'NodeProxyOptions', verbs: proxying }, status],
      fieldSelectors: ['spec.unschedulable'],
      traits: apart,
    }),
    row(localResources.namespaces, {
      shortNames: ['ns'],
      verbs: everyVerb.filter((verb) => verb !== 'deletecollection'),
      subresources: [{ name: 'finalize', verbs: ['update'] }, status],
      fieldSelectors: ['status.phase'],
      deleteAnswers: 'object',
      traits: apart,
    }),
    row(apiResources.configMaps, { shortNames: ['cm'] }),
    row(apiResources.secrets, { fieldSelectors: ['type'] }),
    row(apiResources.serviceAccounts, {
      shortNames: ['sa'],
      subresources: [
        {
          name: 'token',
          group: 'authentication.k8s.io',
          version: 'v1',
          kind: 'TokenRequest',
          verbs: ['create'],
        },
      ],
      deleteAnswers: 'object',
    }),
    row(apiResources.services, {
      shortNames: ['svc'],
      categories: ['all'],
      subresources: [{ name: 'proxy', kind: 'ServiceProxyOptions', verbs: proxying }, status],
      fieldSelectors: ['spec.clusterIP', 'spec.type'],
      deleteAnswers: 'object',
      traits: { ...apart, createByUpdate: 'allowed' },
    }),
    row(localResources.endpoints, { shortNames: ['ep'], traits: { createByUpdate: 'allowed' } }),
    eventRow(),
    row(apiResources.persistentVolumes, {
      shortNames: ['pv'],
      subresources: [status],
      deleteAnswers: 'object',
      traits: apart,
    }),
    row(apiResources.persistentVolumeClaims, {
      shortNames: ['pvc'],
      subresources: [status],
      deleteAnswers: 'object',
      traits: apart,
    }),
    row(localResources.resourceQuotas, {
      shortNames: ['quota'],
      subresources: [status],
      deleteAnswers: 'object',
      traits: apart,
    }),
    row(localResources.limitRanges, { shortNames: ['limits'] }),
    row(localResources.bindings, { verbs: ['create'], kept: 'answered' }),
  ];
}

function podRow(): TableRow {
  const stream = (name: string, kind: string): SubresourceEntry => ({ name, kind, verbs: connecting });
  return row(apiResources.pods, {
    shortNames: ['po'],
    categories: ['all'],
    subresources: [
      stream('attach', 'PodAttachOptions'),
      { name: 'binding', kind: 'Binding', verbs: ['create'] },
      { name: 'ephemeralcontainers', verbs: changing },
      { name: 'eviction', group: 'policy', version: 'v1', kind: 'Eviction', verbs: ['create'] },
      stream('exec', 'PodExecOptions'),
      { name: 'log', verbs: ['get'] },
      stream('portforward', 'PodPortForwardOptions'),
      { name: 'proxy', kind: 'PodProxyOptions', verbs: proxying },
      { name: 'resize', verbs: changing },
      status,
    ],
    fieldSelectors: [
      'spec.nodeName',
      'spec.restartPolicy',
      'spec.schedulerName',
      'spec.serviceAccountName',
      'spec.hostNetwork',
      'status.phase',
      'status.podIP',
      'status.podIPs',
      'status.nominatedNodeName',
    ],
    deleteAnswers: 'object',
    traits: { ...apart, generation: 'counted' },
  });
}

const aboutFields = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'];

function eventRow(): TableRow {
  return row(apiResources.events, {
    shortNames: ['ev'],
    fieldSelectors: [
      ...aboutFields.map((name) => `involvedObject.${name}`),
      'reason',
      'reportingComponent',
      'source',
      'type',
    ],
    traits: { createByUpdate: 'allowed' },
  });
}

/** Other faces of what is stored, each of use only with the view that makes it. */
export function viewTable(): readonly TableRow[] {
  return [
    row(localResources.newerEvents, {
      shortNames: ['ev'],
      fieldSelectors: [
        ...aboutFields.map((name) => `regarding.${name}`),
        'reason',
        'reportingController',
        'type',
      ],
      traits: { createByUpdate: 'allowed' },
    }),
  ];
}

function otherRows(): readonly TableRow[] {
  return [
    row(apiResources.leases, { traits: { createByUpdate: 'allowed', updateWithoutVersion: 'refused' } }),
    row(apiResources.certificateSigningRequests, {
      shortNames: ['csr'],
      subresources: [{ name: 'approval', verbs: changing }, status],
      fieldSelectors: ['spec.signerName'],
      traits: apart,
    }),
    row(apiResources.runtimeClasses, {
      traits: { createByUpdate: 'allowed', updateWithoutVersion: 'refused' },
    }),
    row(localResources.priorityClasses, { shortNames: ['pc'] }),
    row(localResources.podDisruptionBudgets, {
      shortNames: ['pdb'],
      subresources: [status],
      traits: { ...apart, generation: 'counted' },
    }),
  ];
}

function storageRows(): readonly TableRow[] {
  const deleteAnswers = 'object';
  const updateWithoutVersion = 'refused';
  return [
    row(apiResources.csiNodes, { deleteAnswers, traits: { updateWithoutVersion } }),
    row(apiResources.csiDrivers, {
      deleteAnswers,
      traits: { updateWithoutVersion, generation: 'counted' },
    }),
    row(localResources.storageClasses, { shortNames: ['sc'], deleteAnswers }),
    row(apiResources.volumeAttachments, {
      subresources: [status],
      deleteAnswers,
      traits: { ...apart, updateWithoutVersion },
    }),
  ];
}

function answeredRows(): readonly TableRow[] {
  const review = (resource: ApiResource) => row(resource, { verbs: ['create'], kept: 'answered' });
  return [
    review(apiResources.tokenReviews),
    review(localResources.selfSubjectReviews),
    review(apiResources.subjectAccessReviews),
    review(localResources.selfSubjectAccessReviews),
    review(localResources.selfSubjectRulesReviews),
    review(localResources.localSubjectAccessReviews),
  ];
}

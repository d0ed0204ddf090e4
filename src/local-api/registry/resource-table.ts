import { type ApiResource, apiResources } from '../../api/index.ts';
import type { ResourceEntry, ResourceStrategy, ResourceVerb, SubresourceEntry } from '../api/api-types.ts';

/** The properties of a strategy that are the same for many kinds, independent of their fields. */
type StrategyTraits = Pick<
  ResourceStrategy,
  'status' | 'generation' | 'unconditionalUpdate' | 'createOnUpdate'
>;

export interface ResourceDefinition extends Omit<ResourceEntry, 'strategy'> {
  readonly traits: StrategyTraits;
}

const standardVerbs: readonly ResourceVerb[] = [
  'create',
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'update',
  'watch',
];

function define(
  resource: ApiResource,
  given: Partial<Omit<ResourceDefinition, 'resource'>> = {},
): ResourceDefinition {
  return {
    resource,
    singular: resource.kind.toLowerCase(),
    shortNames: [],
    categories: [],
    verbs: standardVerbs,
    subresources: [],
    fieldSelectors: [],
    deleteReturns: 'status',
    storage: 'stored',
    traits: {},
    ...given,
  };
}

const updateVerbs: readonly ResourceVerb[] = ['get', 'patch', 'update'];
const status: SubresourceEntry = { name: 'status', verbs: updateVerbs };
const connectVerbs: readonly ResourceVerb[] = ['create', 'get'];
const proxyVerbs: readonly ResourceVerb[] = ['create', 'delete', 'get', 'patch', 'update'];
const separateStatus: StrategyTraits = { status: 'separate' };

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

/** Resources that clients expect but the kubelet does not use. */
export const serverResources = {
  namespaces: core('namespaces', 'Namespace', 'cluster'),
  bindings: core('bindings', 'Binding'),
  endpoints: core('endpoints', 'Endpoints'),
  resourceQuotas: core('resourcequotas', 'ResourceQuota'),
  limitRanges: core('limitranges', 'LimitRange'),
  eventsV1: grouped('events.k8s.io', 'events', 'Event', 'namespace'),
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

/** All resources of the API, those of the core group first; built for each catalogue. */
export function resourceTable(): readonly ResourceDefinition[] {
  return [...coreResources(), ...otherResources(), ...storageResources(), ...reviewResources()];
}

function coreResources(): readonly ResourceDefinition[] {
  return [
    podResource(),
    define(apiResources.nodes, {
      shortNames: ['no'],
      subresources: [{ name: 'proxy', kind: 'NodeProxyOptions', verbs: proxyVerbs }, status],
      fieldSelectors: ['spec.unschedulable'],
      traits: separateStatus,
    }),
    namespaceResource(),
    define(apiResources.configMaps, { shortNames: ['cm'] }),
    define(apiResources.secrets, { fieldSelectors: ['type'] }),
    serviceAccountResource(),
    define(apiResources.services, {
      shortNames: ['svc'],
      categories: ['all'],
      subresources: [{ name: 'proxy', kind: 'ServiceProxyOptions', verbs: proxyVerbs }, status],
      fieldSelectors: ['spec.clusterIP', 'spec.type'],
      deleteReturns: 'object',
      traits: { ...separateStatus, createOnUpdate: 'allowed' },
    }),
    define(serverResources.endpoints, { shortNames: ['ep'], traits: { createOnUpdate: 'allowed' } }),
    eventResource(),
    define(apiResources.persistentVolumes, {
      shortNames: ['pv'],
      subresources: [status],
      deleteReturns: 'object',
      traits: separateStatus,
    }),
    define(apiResources.persistentVolumeClaims, {
      shortNames: ['pvc'],
      subresources: [status],
      deleteReturns: 'object',
      traits: separateStatus,
    }),
    define(serverResources.resourceQuotas, {
      shortNames: ['quota'],
      subresources: [status],
      deleteReturns: 'object',
      traits: separateStatus,
    }),
    define(serverResources.limitRanges, { shortNames: ['limits'] }),
    define(serverResources.bindings, { verbs: ['create'], storage: 'virtual' }),
  ];
}

function podResource(): ResourceDefinition {
  const stream = (name: string, kind: string): SubresourceEntry => ({ name, kind, verbs: connectVerbs });
  return define(apiResources.pods, {
    shortNames: ['po'],
    categories: ['all'],
    subresources: [
      stream('attach', 'PodAttachOptions'),
      { name: 'binding', kind: 'Binding', verbs: ['create'] },
      { name: 'ephemeralcontainers', verbs: updateVerbs },
      { name: 'eviction', group: 'policy', version: 'v1', kind: 'Eviction', verbs: ['create'] },
      stream('exec', 'PodExecOptions'),
      { name: 'log', verbs: ['get'] },
      stream('portforward', 'PodPortForwardOptions'),
      { name: 'proxy', kind: 'PodProxyOptions', verbs: proxyVerbs },
      { name: 'resize', verbs: updateVerbs },
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
    deleteReturns: 'object',
    traits: { ...separateStatus, generation: 'counted' },
  });
}

function namespaceResource(): ResourceDefinition {
  return define(serverResources.namespaces, {
    shortNames: ['ns'],
    verbs: standardVerbs.filter((verb) => verb !== 'deletecollection'),
    subresources: [{ name: 'finalize', verbs: ['update'] }, status],
    fieldSelectors: ['status.phase'],
    deleteReturns: 'object',
    traits: separateStatus,
  });
}

function serviceAccountResource(): ResourceDefinition {
  return define(apiResources.serviceAccounts, {
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
    deleteReturns: 'object',
  });
}

const referenceFields = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'];

function eventResource(): ResourceDefinition {
  return define(apiResources.events, {
    shortNames: ['ev'],
    fieldSelectors: [
      ...referenceFields.map((name) => `involvedObject.${name}`),
      'reason',
      'reportingComponent',
      'source',
      'type',
    ],
    traits: { createOnUpdate: 'allowed' },
  });
}

/** Resources that are views of other resources. */
export function viewTable(): readonly ResourceDefinition[] {
  return [
    define(serverResources.eventsV1, {
      shortNames: ['ev'],
      fieldSelectors: [
        ...referenceFields.map((name) => `regarding.${name}`),
        'reason',
        'reportingController',
        'type',
      ],
      traits: { createOnUpdate: 'allowed' },
    }),
  ];
}

function otherResources(): readonly ResourceDefinition[] {
  return [
    define(apiResources.leases, { traits: { createOnUpdate: 'allowed', unconditionalUpdate: 'refused' } }),
    define(apiResources.certificateSigningRequests, {
      shortNames: ['csr'],
      subresources: [{ name: 'approval', verbs: updateVerbs }, status],
      fieldSelectors: ['spec.signerName'],
      traits: separateStatus,
    }),
    define(apiResources.runtimeClasses, {
      traits: { createOnUpdate: 'allowed', unconditionalUpdate: 'refused' },
    }),
    define(serverResources.priorityClasses, { shortNames: ['pc'] }),
    define(serverResources.podDisruptionBudgets, {
      shortNames: ['pdb'],
      subresources: [status],
      traits: { ...separateStatus, generation: 'counted' },
    }),
  ];
}

function storageResources(): readonly ResourceDefinition[] {
  const deleteAnswers = 'object';
  const updateWithoutVersion = 'refused';
  return [
    define(apiResources.csiNodes, {
      deleteReturns: deleteAnswers,
      traits: { unconditionalUpdate: updateWithoutVersion },
    }),
    define(apiResources.csiDrivers, {
      deleteReturns: deleteAnswers,
      traits: { unconditionalUpdate: updateWithoutVersion, generation: 'counted' },
    }),
    define(serverResources.storageClasses, { shortNames: ['sc'], deleteReturns: deleteAnswers }),
    define(apiResources.volumeAttachments, {
      subresources: [status],
      deleteReturns: deleteAnswers,
      traits: { ...separateStatus, unconditionalUpdate: updateWithoutVersion },
    }),
  ];
}

function reviewResources(): readonly ResourceDefinition[] {
  const review = (resource: ApiResource) => define(resource, { verbs: ['create'], storage: 'virtual' });
  return [
    review(apiResources.tokenReviews),
    review(serverResources.selfSubjectReviews),
    review(apiResources.subjectAccessReviews),
    review(serverResources.selfSubjectAccessReviews),
    review(serverResources.selfSubjectRulesReviews),
    review(serverResources.localSubjectAccessReviews),
  ];
}

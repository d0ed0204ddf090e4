import { KubelingError } from '../../lib/index.ts';
import type { AccessRules } from '../kinds/index.ts';

export type ResourceRule = AccessRules['resourceRules'][number];
export type PathRule = AccessRules['nonResourceRules'][number];

/** The roles for service accounts; each one includes the permissions of the previous one. */
export type Role = 'view' | 'edit' | 'admin';

const reading = ['get', 'list', 'watch'];
const writing = ['create', 'update', 'patch', 'delete', 'deletecollection'];
const [core, metrics] = ['', 'metrics.k8s.io'];

const view: readonly ResourceRule[] = [
  {
    verbs: reading,
    apiGroups: [core],
    resources: [
      'pods',
      'pods/status',
      'pods/log',
      'configmaps',
      'services',
      'services/status',
      'endpoints',
      'events',
      'serviceaccounts',
      'persistentvolumeclaims',
      'persistentvolumeclaims/status',
      'resourcequotas',
      'limitranges',
      'namespaces',
      'namespaces/status',
    ],
  },
  { verbs: reading, apiGroups: ['events.k8s.io'], resources: ['events'] },
  { verbs: reading, apiGroups: ['policy'], resources: ['poddisruptionbudgets'] },
  { verbs: reading, apiGroups: ['coordination.k8s.io'], resources: ['leases'] },
  { verbs: reading, apiGroups: [metrics], resources: ['pods'] },
];

const edit: readonly ResourceRule[] = [
  ...view,
  { verbs: reading, apiGroups: [core], resources: ['secrets'] },
  {
    verbs: writing,
    apiGroups: [core],
    resources: [
      'pods',
      'configmaps',
      'secrets',
      'services',
      'endpoints',
      'events',
      'serviceaccounts',
      'persistentvolumeclaims',
    ],
  },
  {
    verbs: ['create'],
    apiGroups: [core],
    resources: [
      'pods/exec',
      'pods/attach',
      'pods/portforward',
      'pods/proxy',
      'services/proxy',
      'pods/eviction',
    ],
  },
  {
    verbs: ['get', 'update', 'patch'],
    apiGroups: [core],
    resources: ['pods/ephemeralcontainers', 'pods/resize'],
  },
  { verbs: writing, apiGroups: ['events.k8s.io'], resources: ['events'] },
  { verbs: writing, apiGroups: ['policy'], resources: ['poddisruptionbudgets'] },
  { verbs: writing, apiGroups: ['coordination.k8s.io'], resources: ['leases'] },
];

const admin: readonly ResourceRule[] = [
  ...edit,
  { verbs: ['create'], apiGroups: [core], resources: ['serviceaccounts/token'] },
  { verbs: ['create'], apiGroups: ['authorization.k8s.io'], resources: ['localsubjectaccessreviews'] },
];

export const roleRules: Readonly<Record<Role, readonly ResourceRule[]>> = { view, edit, admin };

/** Cluster-scoped resources that a role in all namespaces may read. */
export const clusterScopedRules: readonly ResourceRule[] = [
  { verbs: reading, apiGroups: [core], resources: ['nodes', 'persistentvolumes'] },
  {
    verbs: reading,
    apiGroups: ['storage.k8s.io'],
    resources: ['storageclasses', 'csinodes', 'csidrivers', 'volumeattachments'],
  },
  { verbs: reading, apiGroups: ['node.k8s.io'], resources: ['runtimeclasses'] },
  { verbs: reading, apiGroups: ['scheduling.k8s.io'], resources: ['priorityclasses'] },
  { verbs: reading, apiGroups: [metrics], resources: ['nodes'] },
];

/** A role granted to a user or group. */
export interface Grant {
  /** The name of a user or a group, such as `system:serviceaccount:default:builder`. */
  readonly to: string;
  readonly role: Role;
  /** The namespace of the role; undefined for all namespaces. */
  readonly namespace: string | undefined;
}

const pattern = /^([a-z0-9.-]+)\/([a-z0-9.-]+|\*)=(view|edit|admin)(?:@([a-z0-9.-]+|\*))?$/;

/**
 * `namespace/account=role` applies in the namespace of the account, `…=role@other` in another one,
 * `…=role@*` in all. `namespace/*` means all accounts of the namespace.
 */
export function parseGrant(text: string): Grant {
  const [, namespace, account, role, within = namespace] = pattern.exec(text) ?? [];
  if (namespace === undefined || account === undefined || role === undefined) {
    throw new KubelingError(
      'FLAG_INVALID',
      `Cannot grant a role as --grant must be namespace/account=view|edit|admin[@namespace|@*]: current value is ${JSON.stringify(text)}`,
    );
  }
  const to =
    account === '*' ? `system:serviceaccounts:${namespace}` : `system:serviceaccount:${namespace}:${account}`;
  return { to, role: role as Role, namespace: within === '*' ? undefined : within };
}

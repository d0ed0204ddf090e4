import { randomBytes } from 'node:crypto';

/**
 * Returns the RBAC objects and secrets that tests need in addition to the defaults of every API
 * server.
 */
export function accessOfNodes(): readonly object[] {
  const user = { kind: 'User', name: 'kube-apiserver-kubelet-client' };
  const bootstrappers = { kind: 'Group', name: 'system:bootstrappers' };
  const nodes = { kind: 'Group', name: 'system:nodes' };
  const approving = 'system:certificates.k8s.io:certificatesigningrequests';
  return [
    binding('test:kubelet-api', 'system:kubelet-api-admin', user),
    binding('test:bootstrap', 'system:node-bootstrapper', bootstrappers),
    binding('test:approve-first', `${approving}:nodeclient`, bootstrappers),
    binding('test:approve-renewal', `${approving}:selfnodeclient`, nodes),
  ];
}

function binding(name: string, role: string, subject: { readonly kind: string; readonly name: string }) {
  const apiGroup = 'rbac.authorization.k8s.io';
  return {
    apiVersion: `${apiGroup}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup, kind: 'ClusterRole', name: role },
    subjects: [{ apiGroup, ...subject }],
  };
}

export interface BootstrapToken {
  readonly token: string;
  /** The token secret that authenticates the service account. */
  readonly secret: object;
}

export function bootstrapToken(): BootstrapToken {
  const id = randomBytes(3).toString('hex');
  const secret = randomBytes(8).toString('hex');
  return {
    token: `${id}.${secret}`,
    secret: {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'bootstrap.kubernetes.io/token',
      metadata: { name: `bootstrap-token-${id}`, namespace: 'kube-system' },
      stringData: {
        'token-id': id,
        'token-secret': secret,
        'usage-bootstrap-authentication': 'true',
      },
    },
  };
}

export function serviceAccount(name: string): object {
  return { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: 'default' } };
}

/** Builds a role and its binding to a user and, if given, to a service account. */
export function accessTo(
  name: string,
  verbs: readonly string[],
  resources: readonly string[],
  user: string,
  account?: string,
): readonly object[] {
  const role = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: `test:${name}` },
    rules: [{ apiGroups: [''], resources, verbs }],
  };
  const bound = binding(`test:${name}`, `test:${name}`, { kind: 'User', name: user });
  if (account === undefined) return [role, bound];
  const subject = { kind: 'ServiceAccount', name: account, namespace: 'default' };
  return [role, { ...bound, subjects: [...bound.subjects, subject] }];
}

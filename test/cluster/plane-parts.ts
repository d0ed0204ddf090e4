import type { ClusterCertificates } from './cluster-certificates.ts';
import { type Answer, httpsGet } from './https-get.ts';
import { Part, type PartPlan } from './part.ts';
import type { ClusterPrograms } from './programs.ts';

export interface PlaneFlags {
  /**
   * The validity of certificates that the cluster signs, as a Go duration; an hour if undefined.
   */
  readonly signingDuration?: string | undefined;
  /**
   * Whether the API server accepts any serving certificate of a kubelet, or only one signed by the
   * cluster; any if undefined.
   */
  readonly kubeletCertificates?: 'any' | 'of-the-cluster' | undefined;
  /** Further flags; if a flag is given twice, the later one is used. */
  readonly apiServerFlags?: readonly string[] | undefined;
  readonly controllerManagerFlags?: readonly string[] | undefined;
}

export interface PlanePlaces {
  readonly programs: ClusterPrograms;
  readonly certificates: ClusterCertificates;
  readonly folder: string;
  readonly ports: PlanePorts;
  readonly controllerManagerConfig: string;
  readonly schedulerConfig: string;
}

export interface PlanePorts {
  readonly etcd: number;
  readonly etcdPeer: number;
  readonly apiServer: number;
  readonly controllerManager: number;
  readonly scheduler: number;
}

const loopback = '127.0.0.1';
const ok = ({ status }: Answer) => status === 200;

/**
 * An address of a documentation range: the API server must not advertise loopback, and no client
 * uses the address.
 */
const advertised = '192.0.2.1';

export function etcdPart({ programs, folder, ports }: PlanePlaces): Part {
  const client = `http://${loopback}:${ports.etcd}`;
  const peer = `http://${loopback}:${ports.etcdPeer}`;
  return new Part({
    name: 'etcd',
    program: programs.etcd,
    folder,
    args: [
      `--data-dir=${folder}/etcd`,
      `--listen-client-urls=${client}`,
      `--advertise-client-urls=${client}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=default=${peer}`,
      // etcd's data need not survive the test, so it is not synced to the disk.
      '--unsafe-no-fsync',
    ],
    isHealthy: async () => (await fetch(`${client}/health`)).ok,
  });
}

export function apiServerPart(
  places: PlanePlaces,
  { apiServerFlags = [], kubeletCertificates = 'any' }: PlaneFlags,
): Part {
  const { programs, certificates: pki, folder, ports } = places;
  const args = [
    `--etcd-servers=http://${loopback}:${ports.etcd}`,
    ...serving(places, ports.apiServer),
    `--advertise-address=${advertised}`,
    '--endpoint-reconciler-type=none',
    `--client-ca-file=${pki.file('ca.crt')}`,
    `--service-account-key-file=${pki.file('sa.pub')}`,
    `--service-account-signing-key-file=${pki.file('sa.key')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    '--enable-bootstrap-token-auth',
    '--service-cluster-ip-range=10.96.0.0/16',
    `--kubelet-client-certificate=${pki.file('kubelet-client.crt')}`,
    `--kubelet-client-key=${pki.file('kubelet-client.key')}`,
    ...(kubeletCertificates === 'any' ? [] : [`--kubelet-certificate-authority=${pki.file('ca.crt')}`]),
    '--kubelet-preferred-address-types=InternalIP,Hostname',
    '--allow-privileged=true',
    ...apiServerFlags,
  ];
  return new Part(plan(places, { name: 'kube-apiserver', program: programs.apiServer, folder, args }));
}

export function controllerManagerPart(
  places: PlanePlaces,
  { signingDuration = '1h', controllerManagerFlags = [] }: PlaneFlags,
): Part {
  const { programs, certificates: pki, folder, ports } = places;
  const args = [
    `--kubeconfig=${places.controllerManagerConfig}`,
    ...serving(places, ports.controllerManager),
    '--leader-elect=false',
    '--use-service-account-credentials',
    `--service-account-private-key-file=${pki.file('sa.key')}`,
    `--root-ca-file=${pki.file('ca.crt')}`,
    `--cluster-signing-cert-file=${pki.file('ca.crt')}`,
    `--cluster-signing-key-file=${pki.file('ca.key')}`,
    `--cluster-signing-duration=${signingDuration}`,
    ...controllerManagerFlags,
  ];
  const program = programs.controllerManager;
  return new Part(plan(places, { name: 'kube-controller-manager', program, folder, args }));
}

export function schedulerPart(places: PlanePlaces): Part {
  const { programs, folder, ports } = places;
  const args = [
    `--kubeconfig=${places.schedulerConfig}`,
    ...serving(places, ports.scheduler),
    '--leader-elect=false',
  ];
  return new Part(plan(places, { name: 'kube-scheduler', program: programs.scheduler, folder, args }));
}

function serving({ certificates: pki }: PlanePlaces, port: number): readonly string[] {
  return [
    `--bind-address=${loopback}`,
    `--secure-port=${port}`,
    `--tls-cert-file=${pki.file('server.crt')}`,
    `--tls-private-key-file=${pki.file('server.key')}`,
  ];
}

const healthOf: Readonly<Record<string, readonly [keyof PlanePorts, string]>> = {
  'kube-apiserver': ['apiServer', 'readyz'],
  'kube-controller-manager': ['controllerManager', 'healthz'],
  'kube-scheduler': ['scheduler', 'readyz'],
};

function plan({ certificates, ports }: PlanePlaces, part: Omit<PartPlan, 'isHealthy'>): PartPlan {
  const [port, path] = healthOf[part.name] ?? ['apiServer', 'readyz'];
  const url = `https://${loopback}:${ports[port]}/${path}`;
  return { ...part, isHealthy: async () => ok(await httpsGet(url, { ca: certificates.ca })) };
}

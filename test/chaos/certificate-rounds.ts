import assert from 'node:assert/strict';
import type { X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { connect, type DetailedPeerCertificate } from 'node:tls';
import { ClusterNode } from '../cluster/cluster-node.ts';
import { container, isReady, pod, podIs, podSpec } from '../cluster/cluster-pods.ts';
import { ControlPlane } from '../cluster/control-plane.ts';
import { FollowedLog } from '../cluster/followed-log.ts';
import { patiently } from '../cluster/patiently.ts';
import { clusterAssets } from '../cluster/programs.ts';
import { CertificateWitness } from './certificate-witness.ts';

export interface CertificatePlan {
  /** How often each of the two certificates is rotated after the first certificate was issued. */
  readonly rotations: number;
  /** The validity of certificates from the cluster's signer, as a Go duration. */
  readonly signedFor: string;
  readonly tell: (text: string) => void;
  /** A promise whose rejection stops the test; the cluster is then removed. */
  readonly interrupted?: Promise<never>;
}

export interface CertificateReport {
  /** The number of client certificates, including the first one. */
  readonly client: number;
  readonly server: number;
  readonly looks: number;
  readonly requests: number;
  readonly slowestMs: number;
  readonly lines: number;
}

interface SigningRequest {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly signerName: string };
  readonly status?: { readonly conditions?: readonly unknown[] };
}

const requests = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const pauseMs = 2_000;
const limitMs = 3_600_000;
const toldCharacters = 6_000;
const speaks = 'trap "exit 0" TERM; i=0; while true; do echo "line $i"; i=$((i+1)); sleep 0.2; done';

/**
 * Tests a node that joined with a bootstrap token and has both its certificates from the cluster.
 * While these are rotated, a log is followed all the time and new requests are sent: no request may
 * fail and no stream may end. The API server trusts the node only by a certificate of the cluster.
 */
export class CertificateRounds {
  readonly #plane: ControlPlane;
  readonly #node: ClusterNode;
  readonly #plan: CertificatePlan;
  readonly #client: CertificateWitness;
  readonly #server: CertificateWitness;
  readonly #stop = new AbortController();
  #requests = 0;
  #slowestMs = 0;
  #lines = 0;

  static async run(plan: CertificatePlan): Promise<CertificateReport> {
    const { signedFor: signingDuration } = plan;
    await using plane = await ControlPlane.open(clusterAssets(), {
      signingDuration,
      kubeletCertificates: 'of-the-cluster',
    });
    const config = { rotateCertificates: true, serverTLSBootstrap: true };
    await using node = await ClusterNode.open(plane, { joins: 'by-bootstrap', config });
    const rounds = new CertificateRounds(plane, node, plan);
    try {
      const report = await rounds.#all();
      assert.deepEqual(await node.leave(), [], 'the machine must be as it was before');
      return report;
    } catch (error) {
      plan.tell(node.out.slice(-toldCharacters));
      throw error;
    }
  }

  private constructor(plane: ControlPlane, node: ClusterNode, plan: CertificatePlan) {
    this.#plane = plane;
    this.#node = node;
    this.#plan = plan;
    const directory = join(node.rootDir, 'pki');
    this.#client = new CertificateWitness(directory, 'kubelet-client', plan.tell);
    this.#server = new CertificateWitness(directory, 'kubelet-server', plan.tell);
  }

  async #all(): Promise<CertificateReport> {
    const { signal } = this.#stop;
    const all = [
      this.#client.watch(signal),
      this.#server.watch(signal),
      this.#approve(signal),
      this.#rounds(),
    ];
    try {
      await Promise.race([Promise.all(all), ...(this.#plan.interrupted ? [this.#plan.interrupted] : [])]);
    } finally {
      this.#stop.abort();
      await Promise.allSettled(all);
    }
    return this.#report();
  }

  async #rounds(): Promise<void> {
    const plane = this.#plane;
    await this.#node.start();
    await this.#node.ready();
    await this.#until('a serving certificate', () => this.#server.seen.length > 0);
    await plane.apply(pod('speaker', podSpec([container('main', { command: ['sh', '-c', speaks] })])));
    await podIs(plane, 'speaker', 'Ready', isReady, () => this.#node.out.slice(-toldCharacters));
    await using log = new FollowedLog(plane, 'speaker');
    await this.#until('the log to be followed', () => log.lines.length > 0);
    await this.#ask(log);
    this.#lines = log.lines.length;
    await log.end();
    log.lines.forEach((line, index) => void assert.equal(line, `line ${index}`));
    await plane.kubectl('delete', 'pod', 'speaker');
    this.#stop.abort();
  }

  /**
   * Repeats the requests until both certificates were rotated often enough, and then a few times
   * more.
   */
  async #ask(log: FollowedLog): Promise<void> {
    const end = performance.now() + limitMs;
    for (let more = 5; more > 0; more -= this.#isDone() ? 1 : 0) {
      assert.ok(performance.now() < end, 'the certificates were not replaced in an hour');
      this.#stop.signal.throwIfAborted();
      const before = log.lines.length;
      await this.#timed(async () => {
        const output = await this.#plane.kubectl('exec', 'speaker', '--', 'echo', 'here');
        assert.equal(output, 'here\n');
      });
      await this.#timed(async () => {
        assert.match(await this.#plane.kubectl('logs', 'speaker', '--tail=1'), /^line \d+\n$/);
      });
      await this.#node.ready();
      await this.#shown();
      await this.#until('the followed log to go on', () => {
        assert.equal(log.ended, undefined, `the followed log broke off: ${log.ended}`);
        return log.lines.length > before;
      });
      await delay(pauseMs);
    }
  }

  #isDone(): boolean {
    return [this.#client, this.#server].every(({ seen }) => seen.length > this.#plan.rotations);
  }

  /** Each new connection must present the current certificate, and never an expired one. */
  async #shown(): Promise<void> {
    const wanted = (shown: string) =>
      this.#server.seen.slice(-2).some(({ fingerprint256 }) => fingerprint256 === shown);
    const { fingerprint256, valid_to: until } = await peerOf(this.#node.port);
    await this.#until('the certificate that the server shows to be in its file', () =>
      wanted(fingerprint256),
    );
    assert.ok(Date.parse(until) > Date.now(), `the server shows a certificate that expired ${until}`);
  }

  async #timed(work: () => Promise<void>): Promise<void> {
    const start = performance.now();
    await work();
    this.#requests++;
    this.#slowestMs = Math.max(this.#slowestMs, performance.now() - start);
  }

  /**
   * Approves requests for serving certificates immediately, as an administrator does in a real
   * cluster.
   */
  async #approve(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const list = await this.#plane.get<{ items: readonly SigningRequest[] }>(requests);
      const waiting = (list?.items ?? [])
        .filter(({ status }) => (status?.conditions ?? []).length === 0)
        .filter(({ spec }) => spec.signerName === 'kubernetes.io/kubelet-serving')
        .map(({ metadata }) => metadata.name);
      if (waiting.length > 0) await this.#plane.kubectl('certificate', 'approve', ...waiting);
      await delay(pauseMs, undefined, { signal }).catch(() => {});
    }
  }

  async #until(what: string, look: () => boolean): Promise<void> {
    await patiently(
      what,
      async () => {
        this.#stop.signal.throwIfAborted();
        return look() ? true : undefined;
      },
      () => this.#node.out.slice(-toldCharacters),
    );
  }

  #report(): CertificateReport {
    const [client, server] = [this.#client, this.#server];
    for (const { seen } of [client, server]) assertAllDifferent(seen);
    const looks = client.looks + server.looks;
    const counts = { client: client.seen.length, server: server.seen.length, looks };
    return { ...counts, requests: this.#requests, slowestMs: this.#slowestMs, lines: this.#lines };
  }
}

function assertAllDifferent(seen: readonly X509Certificate[]): void {
  const serials = new Set(seen.map(({ serialNumber }) => serialNumber));
  assert.equal(serials.size, seen.length, 'each certificate must be new');
}

/** Returns the certificate that a server presents on a new connection. */
async function peerOf(port: number): Promise<DetailedPeerCertificate> {
  const { promise, resolve, reject } = Promise.withResolvers<DetailedPeerCertificate>();
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, timeout: 10_000 });
  socket.on('secureConnect', () => resolve(socket.getPeerCertificate(true)));
  socket.on('timeout', () => reject(new Error('the server did not complete the TLS handshake in time')));
  socket.on('error', reject);
  try {
    return await promise;
  } finally {
    socket.destroy();
  }
}

import assert from 'node:assert/strict';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePorts } from '../free-ports.ts';
import { eventually, KubelingNode } from '../kubeling-node.ts';
import { json } from './volume-objects.ts';

export interface CommandOutcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** One that runs on: what it has said so far, and how to end it. */
export interface RunningCommand {
  readonly child: ChildProcessWithoutNullStreams;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Waits until what it writes fits. */
  says(pattern: RegExp): Promise<string>;
  readonly ended: Promise<CommandOutcome>;
}

const commandWithinMs = 90_000;
/** Where the README's reader is. */
const checkout = fileURLToPath(new URL('../..', import.meta.url));

/** A `kubeling up` of the test's own with its API, and the real kubectl that speaks to it. */
export class LocalCluster implements AsyncDisposable {
  readonly node: KubelingNode;
  readonly #scratch: string;
  readonly #started = new Set<ChildProcessWithoutNullStreams>();
  readonly #typed: string[] = [];

  static async open(): Promise<LocalCluster> {
    const scratch = await mkdtemp(join(tmpdir(), 'klg-kubectl-'));
    const [port] = await freePorts(1);
    const node = await KubelingNode.open(undefined, ['--listen', `127.0.0.1:${port}`]).catch(
      async (error) => {
        await rm(scratch, { recursive: true, force: true });
        throw error;
      },
    );
    return new LocalCluster(node, scratch);
  }

  private constructor(node: KubelingNode, scratch: string) {
    this.node = node;
    this.#scratch = scratch;
  }

  get kubeconfig(): string {
    return join(this.node.dataDir, 'kubeconfig');
  }

  /** All that was given to kubectl so far, each in one line. */
  get typed(): readonly string[] {
    return this.#typed;
  }

  /** A place for files of the test. */
  get scratch(): string {
    return this.#scratch;
  }

  /** Where the API answers. */
  async url(): Promise<string> {
    const { api } = JSON.parse(await readFile(join(this.node.dataDir, 'up.json'), 'utf8'));
    return api.url;
  }

  /** Runs kubectl to its end, whatever that is. */
  async attempt(args: readonly string[], input = ''): Promise<CommandOutcome> {
    const { child, ended } = this.start(args);
    child.stdin.end(input);
    return await ended;
  }

  /** Runs kubectl, which must go well; answers what it wrote. */
  async kubectl(...args: readonly string[]): Promise<string> {
    return await this.feed('', ...args);
  }

  async feed(input: string, ...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.attempt(args, input);
    assert.equal(code, 0, `kubectl ${args.join(' ')} ended with ${code}:\n${stdout}\n${stderr}`);
    return stdout;
  }

  async apply(...items: readonly object[]): Promise<string> {
    return await this.feed(json(...items), 'apply', '-f', '-');
  }

  async ready(pod: string): Promise<string> {
    return await this.kubectl('wait', '--for=condition=Ready', `pod/${pod}`, '--timeout=90s');
  }

  async uidOf(pod: string): Promise<string> {
    return await this.kubectl('get', 'pod', pod, '-o', 'jsonpath={.metadata.uid}');
  }

  /** Waits until the log of a pod has the text. */
  async said(pod: string, text: string): Promise<string> {
    return await this.until(`what ${pod} says`, ['logs', pod], (out) => out.includes(text));
  }

  /** Waits until an event has the text. */
  async event(what: string, text: string): Promise<string> {
    return await this.until(what, ['get', 'events'], (out) => out.includes(text));
  }

  /** Starts kubectl and lets it run. */
  start(args: readonly string[], env: Readonly<Record<string, string>> = {}): RunningCommand {
    this.#typed.push(args.join(' '));
    return this.run('kubectl', ['--kubeconfig', this.kubeconfig, ...args], env);
  }

  /** As `start`, with a terminal. */
  startInTerminal(...args: readonly string[]): RunningCommand {
    this.#typed.push(args.join(' '));
    const line = `exec kubectl --kubeconfig ${this.kubeconfig} ${args.join(' ')}`;
    return this.run('script', ['--quiet', '--return', '--flush', '--command', line, '/dev/null']);
  }

  run(file: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): RunningCommand {
    const own = { HOME: this.#scratch, KUBECACHEDIR: join(this.#scratch, 'cache') };
    const child = spawn(file, args, { cwd: checkout, env: { ...process.env, ...own, ...env } });
    this.#started.add(child);
    const said = { out: '', err: '' };
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      said.out += chunk;
    });
    child.stderr.setEncoding('utf8').on('data', (chunk) => {
      said.err += chunk;
    });
    child.stdin.on('error', () => {});
    const timer = setTimeout(() => child.kill('SIGKILL'), commandWithinMs);
    const ended = new Promise<CommandOutcome>((resolve) => {
      child.once('close', (code) => {
        clearTimeout(timer);
        this.#started.delete(child);
        resolve({ code, stdout: said.out, stderr: said.err });
      });
    });
    const told = () => `${said.out}\n${said.err}`;
    return {
      child,
      stdout: () => said.out,
      stderr: () => said.err,
      says: (pattern) =>
        eventually(
          `${file} ${args.join(' ')} to say ${pattern}`,
          async () => (pattern.test(said.out) ? said.out : undefined),
          60_000,
          told,
        ),
      ended,
    };
  }

  /** Waits until kubectl says something that fits. */
  until(what: string, args: readonly string[], fits: (out: string) => boolean): Promise<string> {
    let last = '';
    return eventually(
      what,
      async () => {
        const { code, stdout, stderr } = await this.attempt(args);
        last = `${stdout}${stderr}`;
        return code === 0 && fits(stdout) ? stdout : undefined;
      },
      60_000,
      () => last,
    );
  }

  /** What is left on the machine, and the node is gone. */
  async leave(): Promise<readonly string[]> {
    for (const child of this.#started) child.kill('SIGKILL');
    const left = await this.node.leave();
    await rm(this.#scratch, { recursive: true, force: true });
    return left;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.leave();
  }
}

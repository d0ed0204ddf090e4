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

/** A background command, with its output so far and its outcome. */
export interface RunningCommand {
  readonly child: ChildProcessWithoutNullStreams;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Waits until the output of the command matches. */
  prints(pattern: RegExp): Promise<string>;
  readonly ended: Promise<CommandOutcome>;
}

const commandWithinMs = 90_000;
/** The working directory in which commands of the README run. */
const checkout = fileURLToPath(new URL('../..', import.meta.url));

/** A `kubeling up` process with its embedded API, and the real kubectl connected to it. */
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

  /** All kubectl commands that were run so far, one line each. */
  get typed(): readonly string[] {
    return this.#typed;
  }

  /** A temporary directory for files of the test. */
  get scratch(): string {
    return this.#scratch;
  }

  /** The URL of the embedded API. */
  async url(): Promise<string> {
    const { api } = JSON.parse(await readFile(join(this.node.dataDir, 'up.json'), 'utf8'));
    return api.url;
  }

  /** Runs kubectl and resolves with its outcome, also when it fails. */
  async attempt(args: readonly string[], input = ''): Promise<CommandOutcome> {
    const { child, ended } = this.start(args);
    child.stdin.end(input);
    return await ended;
  }

  /** Runs kubectl, which must succeed; resolves with its output. */
  async kubectl(...args: readonly string[]): Promise<string> {
    return await this.feed('', ...args);
  }

  async feed(input: string, ...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.attempt(args, input);
    assert.equal(code, 0, `kubectl ${args.join(' ')} exited with ${code}:\n${stdout}\n${stderr}`);
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

  /** Waits until the log of a pod contains the text. */
  async logContains(pod: string, text: string): Promise<string> {
    return await this.until(`the log of ${pod}`, ['logs', pod], (out) => out.includes(text));
  }

  /** Waits until an event contains the text. */
  async event(what: string, text: string): Promise<string> {
    return await this.until(what, ['get', 'events'], (out) => out.includes(text));
  }

  /** Starts a kubectl command in the background. */
  start(args: readonly string[], env: Readonly<Record<string, string>> = {}): RunningCommand {
    this.#typed.push(args.join(' '));
    return this.run('kubectl', ['--kubeconfig', this.kubeconfig, ...args], env);
  }

  /** Starts a kubectl command in the background with a terminal. */
  startInTerminal(...args: readonly string[]): RunningCommand {
    this.#typed.push(args.join(' '));
    const line = `exec kubectl --kubeconfig ${this.kubeconfig} ${args.join(' ')}`;
    return this.run('script', ['--quiet', '--return', '--flush', '--command', line, '/dev/null']);
  }

  run(file: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): RunningCommand {
    const own = { HOME: this.#scratch, KUBECACHEDIR: join(this.#scratch, 'cache') };
    const child = spawn(file, args, { cwd: checkout, env: { ...process.env, ...own, ...env } });
    this.#started.add(child);
    const output = { out: '', err: '' };
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      output.out += chunk;
    });
    child.stderr.setEncoding('utf8').on('data', (chunk) => {
      output.err += chunk;
    });
    child.stdin.on('error', () => {});
    const timer = setTimeout(() => child.kill('SIGKILL'), commandWithinMs);
    const ended = new Promise<CommandOutcome>((resolve) => {
      child.once('close', (code) => {
        clearTimeout(timer);
        this.#started.delete(child);
        resolve({ code, stdout: output.out, stderr: output.err });
      });
    });
    const told = () => `${output.out}\n${output.err}`;
    return {
      child,
      stdout: () => output.out,
      stderr: () => output.err,
      prints: (pattern) =>
        eventually(
          `${file} ${args.join(' ')} to print ${pattern}`,
          async () => (pattern.test(output.out) ? output.out : undefined),
          60_000,
          told,
        ),
      ended,
    };
  }

  /** Repeats a kubectl command until its output matches. */
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

  /** Removes the node and returns what is left on the machine. */
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

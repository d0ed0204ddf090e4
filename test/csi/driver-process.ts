import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from '../kubeling-node.ts';

const program = fileURLToPath(new URL('host-path-driver.ts', import.meta.url));

/** A CSI driver in a separate process, which can be killed and started again. */
export class DriverProcess {
  readonly name: string;
  readonly folder: string;
  readonly #socket: string;
  #process: ChildProcess | undefined;
  #said = '';

  constructor(name: string, folder: string, registry: string) {
    this.name = name;
    this.folder = folder;
    this.#socket = join(registry, `${name}-reg.sock`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'calls.log'), '');
  }

  /** Starts the driver; resolves once the node has registered or rejected it. */
  async start(outcome: 'registered' | 'refused' = 'registered'): Promise<void> {
    const before = this.calls(outcome).length;
    const child = spawn(process.execPath, [program, this.name, this.folder, this.#socket]);
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        this.#said += String(chunk);
      });
    this.#process = child;
    const isTold = async () => (this.calls(outcome).length > before ? true : undefined);
    await eventually(`the driver to be ${outcome}`, isTold, 60_000, () => `${this.#said} ${child.exitCode}`);
  }

  async kill(): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
  }

  /**
   * Kills the driver process and removes its socket, so that the kubelet finds the same as after a
   * graceful shutdown of the driver.
   */
  async leave(): Promise<void> {
    await this.kill();
    rmSync(this.#socket, { force: true });
  }

  /**
   * Makes the driver's calls fail: maps a method, or a method for one volume, to the error that its
   * calls return; with `hang` they never return.
   */
  trouble(methods: Readonly<Record<string, string>>): void {
    writeFileSync(join(this.folder, 'trouble.json'), JSON.stringify(methods));
  }

  /** Sets the volume limit that the driver reports for the node. */
  limit(volumes: number): void {
    writeFileSync(join(this.folder, 'limit'), `${volumes}`);
  }

  /** Sets the topology segment that the driver reports for the node. */
  place(name: string): void {
    writeFileSync(join(this.folder, 'place'), name);
  }

  calls(method: string, volume = ''): readonly string[] {
    const lines = readFileSync(join(this.folder, 'calls.log'), 'utf8').split('\n');
    return lines.filter((line) => line.startsWith(`${method}`) && line.includes(volume));
  }

  contentOf(volume: string): string {
    return join(this.folder, 'volumes', volume);
  }
}

import type { Command } from './command.ts';

/** An entry of the list of commands; the module is loaded on first use. */
export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  load(): Promise<Command>;
}

export const commandTable: readonly CommandEntry[] = [
  {
    name: 'up',
    summary: 'run kubeling on this machine without a cluster',
    load: async () => (await import('./up/up.ts')).command,
  },
  {
    name: 'down',
    summary: 'stop what "up" started and clean up after it',
    load: async () => (await import('./down.ts')).command,
  },
  {
    name: 'run',
    summary: 'run as the kubelet of a node, with the flags of the Go kubelet',
    load: async () => (await import('./run/run.ts')).command,
  },
  {
    name: 'status',
    summary: 'show what kubeling runs on this machine',
    load: async () => (await import('./status.ts')).command,
  },
  {
    name: 'context',
    summary: 'add the API of "up" to your kubeconfig',
    load: async () => (await import('./context/context.ts')).command,
  },
  {
    name: 'explain',
    summary: 'explain a pod: why it runs or does not run',
    load: async () => (await import('./explain.ts')).command,
  },
  {
    name: 'logs',
    summary: 'show the log of a container, and follow it with -f',
    load: async () => (await import('./logs/index.ts')).command,
  },
  {
    name: 'exec',
    summary: 'run a command in a container, or a shell with -it',
    load: async () => (await import('./streams/exec.ts')).command,
  },
  {
    name: 'attach',
    summary: 'attach to the main process of a container',
    load: async () => (await import('./streams/attach.ts')).command,
  },
  {
    name: 'port-forward',
    summary: 'forward local ports to a pod',
    load: async () => (await import('./streams/port-forward.ts')).command,
  },
  {
    name: 'doctor',
    summary: 'check whether this machine can be a node, and what to do about it',
    load: async () => (await import('./doctor/index.ts')).command,
  },
  {
    name: 'version',
    summary: 'print the version',
    load: async () => (await import('./version.ts')).command,
  },
];

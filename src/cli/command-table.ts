import type { Command } from './command.ts';

/** A command as the list of commands knows it: its module is loaded only when it is asked for. */
export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  load(): Promise<Command>;
}

export const commandTable: readonly CommandEntry[] = [
  {
    name: 'up',
    summary: 'run alone on this machine, without a cluster',
    load: async () => (await import('./up/up.ts')).command,
  },
  {
    name: 'down',
    summary: 'end what "up" left running and clean up after it',
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
    summary: 'put the way to the API of "up" into your kubeconfig',
    load: async () => (await import('./context/context.ts')).command,
  },
  {
    name: 'explain',
    summary: 'tell the story of a pod: why it runs or does not',
    load: async () => (await import('./explain.ts')).command,
  },
  {
    name: 'logs',
    summary: 'show what a container has written, and with -f what it writes',
    load: async () => (await import('./logs/index.ts')).command,
  },
  {
    name: 'exec',
    summary: 'run a command in a container, or a shell with -it',
    load: async () => (await import('./streams/exec.ts')).command,
  },
  {
    name: 'attach',
    summary: 'join the main process of a container',
    load: async () => (await import('./streams/attach.ts')).command,
  },
  {
    name: 'port-forward',
    summary: 'make ports of a pod reachable on this machine',
    load: async () => (await import('./streams/port-forward.ts')).command,
  },
  {
    name: 'doctor',
    summary: 'check whether this machine can be a node, and say what to do',
    load: async () => (await import('./doctor/index.ts')).command,
  },
  {
    name: 'version',
    summary: 'print the version',
    load: async () => (await import('./version.ts')).command,
  },
];

export { type Command, type CommandContext, exitCodes, type TextWriter } from './command.ts';
export { flushOutput } from './flush-output.ts';
export { sealInheritedDescriptors } from './inherited-descriptors.ts';
export { runCli } from './main.ts';
export { watchProcess } from './process-events.ts';

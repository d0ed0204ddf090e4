export { type Command, type CommandContext, exitCodes, type TextWriter } from './command.ts';
export { sealInheritedDescriptors } from './inherited-descriptors.ts';
export { runCli } from './main.ts';
export { flushOutput, watchProcess } from './process-events.ts';

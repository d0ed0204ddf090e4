export { podStrategy } from './pod-strategy.ts';
export { Scheduler, type SchedulerOptions } from './scheduler.ts';
export { bindingsStrategy } from './subresource-handlers.ts';

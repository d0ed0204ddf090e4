export { podRules } from './pod-strategy.ts';
export { AutoBinder, type AutoBinderOptions } from './scheduler.ts';
export { olderBindingRules } from './subresource-handlers.ts';
